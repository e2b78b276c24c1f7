"""Nominal times that come while an earlier run has not ended."""

from __future__ import annotations

import pytest

from taskqueue import schedules
from taskqueue.control import request_stop
from taskqueue.core.states import TaskStatus
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Audit, Lease, Occurrence, Schedule, Task
from tests.engine.lost_workers import YEAR, lose, worker_row
from tests.engine.steps import claim_one, lease_of
from tests.sample.tasks import noop
from tests.schedules.steps import (
    HOURLY,
    at,
    end,
    hours_of,
    make,
    reasons,
    run_one,
    serve,
    started,
    task_at,
)  # fmt: skip

pytestmark = pytest.mark.django_db


def test_skip_leaves_out_what_comes_while_a_run_has_not_ended() -> None:
    make(overlap="skip")

    serve(at(1))
    serve(at(2))
    end(1)
    serve(at(3))

    assert started() == [1, 3]
    assert reasons() == {2: f"The run of {at(1).isoformat()} has not ended."}


def test_queue_one_lets_a_single_run_wait_for_the_one_before() -> None:
    make(overlap="queue_one")

    for hour in (1, 2, 3):
        serve(at(hour))

    assert started() == [1]
    assert hours_of(status="waiting") == [2]
    assert reasons() == {3: f"The run of {at(2).isoformat()} waits already."}
    end(1)
    serve(at(3.5))
    assert started() == [1, 2]
    assert hours_of(status="waiting") == []


def test_queue_all_runs_everything_one_after_the_other() -> None:
    make(overlap="queue_all")

    for hour in (1, 2, 3):
        serve(at(hour))

    for ended, now in ((1, [1, 2]), (2, [1, 2, 3])):
        end(ended)
        serve(at(3.5))
        assert started() == now
    assert reasons() == {}


def test_cancel_asks_the_running_one_to_stop_and_starts_the_new_one_after_it() -> None:
    make(overlap="cancel")
    serve(at(1))
    run_one()

    serve(at(2))

    lease = Lease.objects.get()
    assert lease.stop_requested_by == "schedule s"
    assert lease.stop_reason == f"The run of {at(2).isoformat()} has come."
    assert started() == [1]
    end(1, TaskStatus.CANCELLED)
    serve(at(2.1))
    assert started() == [1, 2]


def test_cancel_leaves_the_lease_of_a_lost_worker_to_a_person() -> None:
    make(overlap="cancel", task=noop.using(lease_duration=YEAR))
    serve(at(1))
    worker_row("w1")
    claimed = claim_one(worker="w1")
    lose("w1")

    serve(at(2))

    assert lease_of(claimed).status == "running"
    assert hours_of(status="waiting") == [2]
    assert request_stop(task_at(1).id, by="ada") == "cancelled"
    serve(at(2.1))
    assert started() == [1, 2]


def test_cancel_replaces_one_that_has_not_started_at_once() -> None:
    make(overlap="cancel")
    serve(at(1))

    serve(at(2))

    assert task_at(1).status == TaskStatus.CANCELLED
    assert started() == [1, 2]
    assert hours_of(status="ended", task_status="cancelled") == []
    serve(at(2.1))
    assert hours_of(status="ended", task_status="cancelled") == [1]


def test_cancel_keeps_only_the_newest_waiting_while_the_running_one_stops() -> None:
    make(overlap="cancel")
    serve(at(1))
    run_one()

    for hour in (2, 3):
        serve(at(hour))

    assert hours_of(status="waiting") == [3]
    assert reasons() == {2: f"The run of {at(3).isoformat()} has come."}


def test_allow_runs_them_side_by_side() -> None:
    make(overlap="allow")

    for hour in (1, 2, 3):
        serve(at(hour))

    assert started() == [1, 2, 3]
    assert set(Task.objects.values_list("status", flat=True)) == {"ready"}


def test_a_run_that_waits_does_not_begin_while_its_schedule_is_paused() -> None:
    make(overlap="queue_one")
    serve(at(1))
    serve(at(2))
    Schedule.objects.update(paused_at=at(2), paused_by="ada", pause_reason="holidays")

    end(1)
    serve(at(2.5))

    assert started() == [1]
    assert reasons() == {2: "Paused by ada: holidays"}


def test_running_by_hand_keeps_to_the_overlap_policy() -> None:
    for name, overlap in (("skips", "skip"), ("queues", "queue_all"), ("allows", "allow")):
        schedules.create(name, noop, HOURLY, overlap=overlap)
    for name in ("skips", "queues", "allows"):
        assert schedules.run_now(name, by="ada").status == "enqueued"

    assert schedules.run_now("queues").status == "waiting"
    assert schedules.run_now("allows").status == "enqueued"
    with pytest.raises(TransitionRefused, match=r"has not ended"):
        schedules.run_now("skips")

    assert Occurrence.objects.filter(requested_by="ada").count() == 3
    assert Audit.objects.filter(noun="schedule", verb="run_now").count() == 5
