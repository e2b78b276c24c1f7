"""A paused queue: nothing of it is claimed, what runs goes on, and its pause may end by itself."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection

from taskqueue import InvalidTask, TransitionRefused
from taskqueue.control import pause, resume
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction as own_transaction
from taskqueue.engine.forecast import ready_queues
from taskqueue.models import Audit, Queue, Task
from tests.engine.steps import (
    another_connection,
    claim,
    claim_one,
    end,
    future,
    past,
    promote,
    run_at_once,
    task_of,
)
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


class RolledBack(Exception):
    """Ends a transaction that is not to be kept."""


def audited() -> list[tuple[str, ...]]:
    lines = Audit.objects.order_by("id")
    return list(lines.values_list("verb", "subject", "actor", "reason", "before"))


def test_nothing_of_a_paused_queue_is_claimed_until_it_is_resumed() -> None:
    result = noop.using(queue_name="mail").enqueue()
    pause("mail", by="anna", reason="the relay is down")
    assert claim(queue="mail") == []
    assert task_of(result).status == "ready"
    resume("mail", by="ben", reason="it is back")
    assert claim_one(queue="mail").task_id == str(result.id)
    assert audited() == [
        ("pause", "mail", "anna", "the relay is down", ""),
        ("resume", "mail", "ben", "it is back", "paused"),
    ]


def test_a_pause_says_who_why_and_until_when() -> None:
    until = future()
    pause("mail", until=until, by="anna", reason="the relay is down")
    queue = Queue.objects.get(name="mail")
    assert queue.paused_at is not None
    assert (queue.paused_until, queue.paused_by, queue.pause_reason) == (
        until,
        "anna",
        "the relay is down",
    )
    assert Audit.objects.get().detail == f"until {until.isoformat()}"
    resume("mail")
    queue.refresh_from_db()
    assert (queue.paused_at, queue.paused_until) == (None, None)
    assert (queue.paused_by, queue.pause_reason) == ("", "")


def test_the_other_queues_go_on() -> None:
    for name in ("mail", "default", "images"):
        noop.using(queue_name=name).enqueue()
    pause("mail")
    claimed = claim(quotas=[("mail", 5), ("default", 5), ("images", 5)])
    assert [each.queue_name for each in claimed] == ["default", "images"]


def test_a_pause_lets_a_running_task_end_and_holds_its_retry() -> None:
    result = noop.using(max_attempts=2).enqueue()
    claimed = claim_one()
    pause("default")
    assert end(claimed, OutcomeKind.FAILED, delay=0, error_class="E") in ("retrying", "ready")
    promote()
    assert task_of(result).status == "ready"
    assert claim() == []
    resume("default")
    assert claim_one().attempt == 2


def test_a_pause_ends_by_itself() -> None:
    noop.enqueue()
    pause("default", until=timedelta(hours=1))
    assert claim() == []
    Queue.objects.update(paused_until=past())
    assert ready_queues(connection) == ["default"]
    assert promote().has_ready
    assert len(claim()) == 1
    with pytest.raises(TransitionRefused, match="'default' is not paused"):
        resume("default")


def test_ready_tasks_of_paused_queues_give_nobody_a_reason_to_claim() -> None:
    for name in ("a", "b", "c"):
        noop.using(queue_name=name).enqueue()
    pause("b")
    assert ready_queues(connection) == ["a", "c"]
    assert promote().has_ready
    pause("a")
    pause("c")
    assert ready_queues(connection) == []
    assert not promote().has_ready


def test_pausing_again_replaces_the_reason_and_the_end() -> None:
    pause("mail", until=60, by="anna", reason="for a moment")
    pause("mail", by="ben", reason="for good")
    queue = Queue.objects.get()
    assert (queue.paused_until, queue.paused_by, queue.pause_reason) == (None, "ben", "for good")
    assert [line[4] for line in audited()] == ["", "paused"]


@pytest.mark.parametrize("until", [0, timedelta(0), past(), "soon", past().replace(tzinfo=None)])
def test_a_pause_that_is_over_before_it_begins_is_refused(until: Any) -> None:
    with pytest.raises((InvalidTask, TypeError)):
        pause("mail", until=until)
    assert not Queue.objects.exists()


@pytest.mark.parametrize("until", [float("nan"), "soon", past().replace(tzinfo=None), 1e300])
def test_an_invalid_end_of_a_pause_is_reported_for_until(until: Any) -> None:
    with pytest.raises(InvalidTask, match=r"^until") as refusal:
        pause("mail", until=until)
    assert "run_after" not in str(refusal.value)


@pytest.mark.parametrize("name", ["a\x00b", "\ud800"])
def test_text_that_cannot_be_stored_is_no_paused_queue(name: str) -> None:
    with pytest.raises(TransitionRefused, match="is not paused"):
        resume(name)


@pytest.mark.parametrize("name", ["", "two words", "x" * 101, 7])
def test_a_name_that_no_queue_can_have_is_refused(name: Any) -> None:
    with pytest.raises(InvalidTask, match="queue_name must be"):
        pause(name)


def test_resuming_what_is_not_paused_is_refused_and_the_nearest_suggested() -> None:
    pause("mail")
    with pytest.raises(TransitionRefused, match=r"'mial' is not paused\. Did you mean 'mail'\?"):
        resume("mial")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_no_claim_that_begins_after_a_pause_takes_anything() -> None:
    noop.enqueue_many([((), {})] * 400)
    claimed = Event()
    late: list[int] = []

    def work() -> None:
        with another_connection() as own:
            while len(late) < 60:
                was_paused = Queue.objects.filter(paused_at__isnull=False).exists()
                # Rolled back, so that tasks are left however late the pause comes.
                with suppress(RolledBack), own_transaction(own):
                    found = claim(2, connection=own)
                    raise RolledBack
                claimed.set()
                if was_paused:
                    late.append(len(found))

    def pause_in_between() -> None:
        assert claimed.wait(60)
        pause("default")

    run_at_once([work, work, pause_in_between], timeout=300)
    assert sum(late) == 0
    assert Task.objects.filter(status="ready").count() == 400
