"""Folds and advances that run at the same time release every step once."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import Count

from taskqueue import chord, group
from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed
from taskqueue.engine.workflows import rounds, serving
from taskqueue.models import Member, Step, StepEnd, Task
from tests.engine.steps import another_connection, claim, outcome, policy, run_at_once
from tests.sample.tasks import add, echo
from tests.workflows.steps_of import assert_settled, finish

pytestmark = pytest.mark.django_db(transaction=True)
CHORDS, WIDTH, WORKERS = 12, 8, 6


def work(worker: str, *, advances: bool = True) -> None:
    """Claim, record and advance as a worker does, until nothing is left to claim."""
    with another_connection() as own:
        idle = 0
        while idle < 3:
            with transaction(own):
                claimed = claim(5, worker=worker, connection=own)
            outcomes = [outcome(task, OutcomeKind.SUCCEEDED, return_value="1") for task in claimed]
            if not outcomes:
                idle += 1
                serving.serve(own)
                continue
            idle = 0
            with transaction(own):
                recorded = record(own, outcomes, policy=policy())
            steps = {row.step_id for row in recorded.values() if row.step_id is not None}
            if advances:
                rounds.fold_and_advance(own, steps)


def test_workers_that_end_members_at_once_call_back_once() -> None:
    runs = [chord([add.s(n, 1) for n in range(WIDTH)], echo.s()).enqueue() for _ in range(CHORDS)]
    run_at_once(partial(work, f"w{number}") for number in range(WORKERS))
    for run in runs:
        run.refresh()
        assert run.status == "succeeded"
        assert_settled(run)
    assert Task.objects.filter(name=echo.name).count() == CHORDS
    assert not StepEnd.objects.exists()
    twice = Member.objects.values("step_id", "place").annotate(n=Count("task_id")).filter(n__gt=1)
    assert not twice.exists()


def test_members_that_succeed_at_once_share_a_note() -> None:
    runs = [chord([add.s(n, 1) for n in range(WIDTH)], echo.s()).enqueue() for _ in range(2)]
    claimed = claim(2 * WIDTH)
    failed = claimed.pop()
    outcomes = [outcome(task, OutcomeKind.SUCCEEDED, return_value="1") for task in claimed]
    outcomes.append(outcome(failed, OutcomeKind.FAILED, retryable=False))
    with transaction(connection):
        recorded = record(connection, outcomes, policy=policy())
    notes = StepEnd.objects.order_by("step_id", "-number").values_list("status", "number")
    assert list(notes) == [("succeeded", WIDTH), ("succeeded", WIDTH - 1), ("failed", 1)]
    assert len({row for row in recorded.values() if row.task_status == "succeeded"}) == 2
    folded = rounds.fold(connection, {row.step_id for row in recorded.values() if row.step_id})
    assert [step.is_due for step in folded] == [True, True]
    counts = Step.objects.filter(kind="map").order_by("id").values_list("ended", "failures")
    assert list(counts) == [(WIDTH, 0), (WIDTH, 1)]
    assert not StepEnd.objects.exists()
    assert [finish(run).status for run in runs] == ["succeeded", "failed"]


def test_a_duty_finds_all_that_no_worker_advanced() -> None:
    runs = [group(add.s(n, 1) for n in range(WIDTH)).enqueue() for _ in range(3)]
    run_at_once(partial(work, f"w{number}", advances=False) for number in range(2))
    for run in runs:
        run.refresh()
        assert run.status == "succeeded"
        assert_settled(run)


@pytest.mark.postgresql_only  # SQLite locks the whole file.
def test_a_fold_skips_a_step_that_is_locked_and_says_so() -> None:
    run = group(add.s(n, 1) for n in range(2)).enqueue()
    [step] = Step.objects.filter(workflow_id=run.id)
    with another_connection() as own:
        with transaction(own):
            own.cursor().execute("SELECT 1 FROM taskqueue_step WHERE id = %s FOR UPDATE", [step.id])
            assert rounds.fold(connection, [step.id]) == []
        assert [each.step_id for each in rounds.fold(connection, [step.id])] == [step.id]
    finish(run)
    assert_settled(run)


@pytest.mark.postgresql_only  # SQLite locks the whole file.
def test_a_step_completed_under_anothers_lock_is_advanced_by_the_holder() -> None:
    run = (add.s(1, 1) | add.s(1)).enqueue()
    [task] = claim(1)
    with another_connection() as own:
        with transaction(own):
            own.cursor().execute(
                "SELECT 1 FROM taskqueue_workflow WHERE id = %s FOR UPDATE", [run.id]
            )
            recorded = record(
                connection,
                [outcome(task, OutcomeKind.SUCCEEDED, return_value="2")],
                policy=policy(),
            )
            assert not rounds.advance(connection, [run.id]), "Somebody else has it."
        steps = [row.step_id for row in recorded.values() if row.step_id is not None]
        rounds.fold_and_advance(own, steps)
    assert claim(1), "The next call is ready."


@pytest.mark.postgresql_only  # SQLite locks the whole file.
def test_who_was_refused_a_workflow_tries_again_once_its_own_fold_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = (add.s(1, 1) | add.s(1)).enqueue()
    [task] = claim(1)
    ends = [outcome(task, OutcomeKind.SUCCEEDED, return_value="2")]
    recorded = record(connection, ends, policy=policy())
    refusals = []

    def lock_workflows(using: Any, ids: Any) -> Any:
        locked = before(using, ids)
        if not refusals:
            refusals.append(locked)
            holder.cursor().execute("COMMIT")
            # It looks again after its COMMIT, while the fold is not committed yet.
            assert not rounds.look_again(holder, [UUID(str(run.id))])
        return locked

    before = rounds.lock_workflows
    monkeypatch.setattr(rounds, "lock_workflows", lock_workflows)
    with another_connection() as holder:
        holder.cursor().execute("BEGIN")
        holder.cursor().execute(
            "SELECT 1 FROM taskqueue_workflow WHERE id = %s FOR UPDATE", [run.id]
        )
        steps = [row.step_id for row in recorded.values() if row.step_id is not None]
        rounds.fold_and_advance(connection, steps)
    assert refusals == [None]
    assert claim(1), "The next call is ready."


@pytest.mark.postgresql_only  # SQLite locks the whole file.
@pytest.mark.parametrize("is_due_one_locked", [False, True])
def test_an_end_refused_a_lock_in_a_batch_is_advanced_after_the_batch(
    monkeypatch: pytest.MonkeyPatch, is_due_one_locked: bool
) -> None:
    due = (add.s(1, 1) | add.s(1)).enqueue()
    beside = group([group([add.s(2, 1), add.s(3, 1)]), echo.s(4)]).enqueue()
    tasks = {json.loads(task.args)[0]: task for task in claim(4)}
    recorded = record(connection, successes(tasks[1], tasks[2]), policy=policy())
    refused: list[bool] = []

    def lock_workflows(using: Any, ids: Any) -> Any:
        if using is connection and not refused:
            refused.append(True)
            with transaction(other):
                steps = steps_of(record(other, successes(tasks[4]), policy=policy()))
            rounds.fold_and_advance(other, steps)
            assert Step.objects.get(workflow=beside.id, name="echo").status == "running"
        return before(using, ids)

    before = rounds.lock_workflows
    monkeypatch.setattr(rounds, "lock_workflows", lock_workflows)
    with another_connection() as other, another_connection() as holder, transaction(holder):
        if is_due_one_locked:
            lock = "SELECT 1 FROM taskqueue_workflow WHERE id = %s FOR UPDATE"
            holder.cursor().execute(lock, [due.id])
        rounds.fold_and_advance(connection, steps_of(recorded))
        assert Step.objects.get(workflow=beside.id, name="echo").status == "succeeded"
    assert refused
    record(connection, successes(tasks[3]), policy=policy())
    for run in (due, beside):
        assert finish(run).status == "succeeded"
        assert_settled(run)


def successes(*tasks: Claimed) -> list[Outcome]:
    return [outcome(task, OutcomeKind.SUCCEEDED, return_value="1") for task in tasks]


def steps_of(recorded: dict[int, Recorded]) -> set[int]:
    return {row.step_id for row in recorded.values() if row.step_id is not None}
