"""When a worker folds what it has recorded, and how surely what follows is committed."""

from __future__ import annotations

from math import inf
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.db.transaction import atomic

from taskqueue import group
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed, Folded
from taskqueue.engine.sessions import commit_lazily
from taskqueue.engine.statement import fetch
from taskqueue.engine.workflows import rounds
from taskqueue.engine.workflows.closing import Closing
from taskqueue.engine.workflows.rounds import fold_and_advance
from taskqueue.models import Step, Task, Worker
from taskqueue.worker import workflows
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.workflows import StepEnds
from tests.engine.steps import another_connection, claim, outcome, policy
from tests.engine.test_workers import registered
from tests.sample.tasks import add, echo
from tests.worker.played import NOW, PlayedWorker
from tests.workflows.steps_of import assert_settled

pytestmark = pytest.mark.django_db(transaction=True)


def recorded(tasks: list[Claimed]) -> Exchange:
    """Record successes of tasks, as a request of a worker's main thread does."""
    ends = [outcome(task, OutcomeKind.SUCCEEDED, return_value="1") for task in tasks]
    with transaction(connection):
        return Exchange(recorded=record(connection, ends, policy=policy()))


@pytest.fixture
def long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows, "SHORTEST_PAUSE", workflows.WIDEST_PAUSE)


@pytest.mark.usefixtures("long_pauses")
def test_the_last_members_of_a_wide_map_are_counted_with_the_record_that_ends_them() -> None:
    run = add.starmap((n, 1) for n in range(300)).enqueue()
    tasks = claim(300)
    ends = StepEnds()
    ends.take(connection, recorded(tasks[:10]))
    ends.take(connection, recorded(tasks[10:20]))
    assert Step.objects.get().ended == 10, "It was folded a moment ago, and lacks many."
    ends.take(connection, recorded(tasks[20:180]))
    ends.take(connection, recorded(tasks[180:]))
    run.refresh()
    assert run.status == "succeeded"
    assert_settled(run)


@pytest.mark.usefixtures("long_pauses")
def test_waiting_step_ends_are_counted_by_a_request_without_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add.starmap((n, 1) for n in range(300)).enqueue()
    tasks = claim(300)
    ends = StepEnds()
    ends.take(connection, recorded(tasks[:10]))
    waiting = recorded(tasks[10:20])
    ends.take(connection, waiting)
    assert waiting.fold_at is not None
    early = Exchange()
    ends.take(connection, early)
    assert (early.fold_at, Step.objects.get().ended) == (None, 10)
    clock = SimpleNamespace(monotonic=lambda: waiting.fold_at)
    monkeypatch.setattr("taskqueue.worker.workflows.time", clock)
    later = Exchange()
    ends.take(connection, later)
    assert (later.fold_at, Step.objects.get().ended) == (inf, 20)


def test_a_failure_among_many_members_waits_for_no_long_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for pause in ("SHORTEST_PAUSE", "WIDEST_PAUSE"):
        monkeypatch.setattr(workflows, pause, 600)
    add.using(max_attempts=1).starmap((n, 1) for n in range(300)).enqueue()
    succeeded, failed = claim(2)
    ends = StepEnds()
    ends.take(connection, recorded([succeeded]))
    end = outcome(failed, OutcomeKind.FAILED, error_class="ValueError", retryable=False)
    with transaction(connection):
        exchange = Exchange(recorded=record(connection, [end], policy=policy()))
    before = monotonic()
    ends.take(connection, exchange)
    assert exchange.fold_at is not None
    assert exchange.fold_at < before + 300


def test_another_request_leaves_a_planned_count_unchanged() -> None:
    worker = PlayedWorker(slots=0).rest()
    worker.timetable.fold_at = NOW + 0.05
    worker.timetable.are_duties_next = True
    worker.timetable.serve_duties_by(NOW)
    request = worker.next_request(NOW + 0.01)
    assert request is not None
    assert request.with_duties
    worker.answer(now=NOW + 0.02)
    assert worker.next_request(NOW + 0.05) is not None


def test_the_more_members_a_step_lacks_the_more_rarely_it_is_counted() -> None:
    def pause(lacking: int, *, is_due: bool = False) -> float:
        return workflows._pause(Folded(1, "", is_due, lacking))

    assert pause(100) == workflows.SHORTEST_PAUSE
    assert pause(8000) == 0.2
    assert pause(10**6) == workflows.WIDEST_PAUSE
    assert pause(10**6, is_due=True) == workflows.WIDE_PAUSE, "Its ends let others be sent."


@pytest.mark.postgresql_only
def test_a_step_locked_by_another_worker_is_left_to_it_and_then_to_the_duties() -> None:
    add.starmap((n, 1) for n in range(300)).enqueue()
    first, second, third = claim(3)
    ends = StepEnds()
    with another_connection() as own, transaction(own):
        fetch(own, "SELECT id FROM taskqueue_step FOR UPDATE")
        once, twice = recorded([first]), recorded([second])
        ends.take(connection, once)
        assert once.fold_at is not None
        assert once.fold_at < once.step_ends_at == inf
        ends.take(connection, twice)
        assert twice.step_ends_at < inf == twice.fold_at
    ends.take(connection, recorded([third]))
    assert Step.objects.get().ended == 3


@pytest.mark.postgresql_only
def test_a_count_that_decides_nothing_need_not_outlive_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[str] = []

    def noted(own: Any) -> None:
        commit_lazily(own)
        found.append(fetch(own, "SHOW synchronous_commit")[0][0])

    monkeypatch.setattr(rounds, "commit_lazily", noted)
    add.starmap((n, 1) for n in range(2)).enqueue()
    recorded(claim(1))
    step = Step.objects.get()
    fold_and_advance(connection, [step.id])
    assert found == ["off"]
    assert fetch(connection, "SHOW synchronous_commit")[0][0] == "on"
    recorded(claim(1))
    with atomic():  # Somebody else's transaction.
        fold_and_advance(connection, [step.id])
    assert found == ["off"]


@pytest.mark.postgresql_only
def test_only_what_workers_do_of_themselves_need_not_outlive_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[str] = []
    close = Closing.close

    def noted(self: Any, releaser: Any) -> None:
        close(self, releaser)
        found.append(fetch(connection, "SHOW synchronous_commit")[0][0])

    monkeypatch.setattr(Closing, "close", noted)
    run = (add.s(1, 1) | add.s(1) | add.s(1)).enqueue()
    recorded(claim(1))
    fold_and_advance(connection, [Step.objects.get(name="add").id])
    recorded(claim(1))
    with atomic():  # Somebody else's transaction.
        fold_and_advance(connection, [Step.objects.get(name="add-2").id])
    run.cancel()
    assert found == ["on", "off", "on", "on"]


@pytest.mark.postgresql_only
@pytest.mark.parametrize("kind", [OutcomeKind.SUCCEEDED, OutcomeKind.FAILED])
def test_the_end_of_a_workflow_outlives_a_crash_beside_others_that_go_on(
    monkeypatch: pytest.MonkeyPatch, kind: OutcomeKind
) -> None:
    found: list[str] = []
    close = Closing.close

    def noted(self: Any, releaser: Any) -> None:
        close(self, releaser)
        found.append(fetch(connection, "SHOW synchronous_commit")[0][0])

    ending = add.starmap([(1, 1)]).enqueue()
    (add.s(1, 1) | add.s(1)).enqueue()
    last = Task.objects.get(step__workflow=ending.id)
    ends = [
        outcome(
            task,
            kind if task.task_id == str(last.id) else OutcomeKind.SUCCEEDED,
            return_value="1",
            retryable=False,
        )
        for task in claim(2)
    ]
    with transaction(connection):
        record(connection, ends, policy=policy())
    monkeypatch.setattr(Closing, "close", noted)
    running = Step.objects.filter(status="running").values_list("id", flat=True)
    fold_and_advance(connection, list(running))
    ending.refresh()
    assert (ending.status, found) == (kind, ["on"])


@pytest.mark.postgresql_only
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_release_wakes_workers_that_sleep(is_cancelled: bool) -> None:
    """Also where nothing became ready but members of a map beside it."""
    registered("w1")
    Worker.objects.update(is_idle=True)
    (add.s(1, 1) | group(add.s(1), echo.map([1, 2]))).enqueue()
    recorded(claim(1))
    if is_cancelled:
        Task.objects.filter(step__name="group.add").update(status="cancelled")
    with another_connection() as listener:
        listener.cursor().execute("LISTEN taskqueue")
        fold_and_advance(connection, [Step.objects.get(name="add").id])
        assert list(listener.connection.notifies(timeout=60, stop_after=1))
