"""The table of transitions is what the engine does, no more and no less."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from taskqueue import TransitionRefused
from taskqueue.core.outcomes import TRANSITIONS, OutcomeKind, may_follow
from taskqueue.core.states import FINISHED, LeaseStatus, TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus, WorkflowStatus
from taskqueue.engine.rows import Claimed
from taskqueue.engine.workflows.reopening import reopen_some
from taskqueue.engine.workflows.retrying import Retry
from taskqueue.models import Lease, Member, Step, Task, Workflow
from taskqueue.results import TaskResult
from tests.engine.steps import (
    claim,
    claim_one,
    end,
    end_overdue,
    lease_of,
    make_due,
    past,
    promote,
    prune,
    run_out,
    task_of,
)
from tests.engine.test_takeover import take_over_now
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db
EVERY = list(TaskStatus)
base = echo.using(
    max_attempts=5, max_crashes=5, unique_key="k", deadline=900, expires_after=900, crash_delay=60
)
# No CHECK keeps these from falling below zero.
COUNTERS = ("attempt", "failures", "crashes", "attempts_before_retry")
Act = Callable[[TaskResult[Any]], object]


def reopen_in_workflow(result: TaskResult[Any]) -> None:
    """Make it the task of a step that failed, and have that run again; nothing is released."""
    row = task_of(result)
    if row.status not in FINISHED:
        return
    workflow = Workflow.objects.create(
        name="w", format=1, status=WorkflowStatus.FAILED, total_steps=1
    )
    step = Step.objects.create(
        workflow=workflow, name="s", kind=StepKind.TASK, status=StepStatus.FAILED, members=1
    )
    Member.objects.create(step=step, place=0, task=row)
    Task.objects.filter(id=row.id).update(step=step, place=0)
    Retry(connection, workflow, now=timezone.now()).reopen([], anew=[step.id])
    reopen_some(connection, [Step.objects.get(id=step.id)], most=1)


def put(status: TaskStatus) -> TaskResult[Any]:
    """A task in that status; a running one holds a lease, the others have no trace of one."""
    result = base.enqueue()
    if status == TaskStatus.RUNNING:
        claim_one()
        return result
    finished_at = timezone.now() if status in FINISHED else None
    Task.objects.filter(id=result.id).update(status=status, finished_at=finished_at)
    return result


def end_by(kind: OutcomeKind, **fields: Any) -> Act:
    """Claim it if that is possible, and record an outcome for whatever lease there is."""

    def act(result: TaskResult[Any]) -> None:
        claim()
        for lease in Lease.objects.filter(task_id=result.id):
            held = Claimed(lease.id, str(result.id), *[""] * 14)  # type: ignore[arg-type]
            end(held, kind, **fields)

    return act


def refused(act: Act) -> Act:
    """The act, where the engine may refuse it."""

    def attempt(result: TaskResult[Any]) -> None:
        with suppress(TransitionRefused):
            act(result)

    return attempt


def promote_when_due(result: TaskResult[Any]) -> None:
    make_due(result)
    promote()


def end_when_overdue(column: str) -> Act:
    def act(result: TaskResult[Any]) -> None:
        Task.objects.filter(id=result.id).update(**{column: past()})
        end_overdue()

    return act


def take_over_expired(result: TaskResult[Any]) -> None:
    for lease in Lease.objects.filter(task_id=result.id):
        Lease.objects.filter(id=lease.id).update(expires_at=past())
    take_over_now()


ACTS: dict[str, Act] = {
    "claim": lambda result: claim(),
    "promote": promote_when_due,
    "deadline": end_when_overdue("deadline_at"),
    "expiry": end_when_overdue("expires_at"),
    "take over": take_over_expired,
    "prune": lambda result: prune(),
    "cancel": refused(lambda result: result.cancel()),
    "request stop": refused(lambda result: result.request_stop()),
    "retry": refused(lambda result: result.retry()),
    "retry with other arguments": refused(lambda result: result.retry(args=[3])),
    "retry its workflow": reopen_in_workflow,
    "run now": refused(lambda result: result.run_now()),
    "reschedule": refused(lambda result: result.reschedule(past())),
    "reschedule later": refused(lambda result: result.reschedule(60)),
    "update": refused(lambda result: result.update(priority=3, worker_names=["w2"])),
    "replace": lambda result: base.using(on_duplicate="replace").enqueue(2),
    "replace later": lambda result: base.using(on_duplicate="replace", run_after=60).enqueue(2),
    "enqueue again": lambda result: base.enqueue(),
    **{f"record {kind}": end_by(kind) for kind in OutcomeKind},
    "record a failure for good": end_by(OutcomeKind.FAILED, retryable=False),
}


@pytest.mark.parametrize("status", EVERY)
def test_whatever_the_engine_does_a_status_changes_only_as_the_table_says(
    status: TaskStatus,
) -> None:
    seen: set[TaskStatus] = set()
    for name, act in ACTS.items():
        with transaction.atomic():
            result = put(status)
            act(result)
            row = task_of(result)
            assert all(getattr(row, counter) >= 0 for counter in COUNTERS), name
            after = TaskStatus(row.status)
            steps = {after} - {status}
            if name.startswith("record") and status == TaskStatus.READY:
                steps = set()  # two steps: its claim, and what the row of `running` checks
            for step in steps:
                assert may_follow(status, step), f"{name}: {status} -> {step}"
            seen |= steps
            transaction.set_rollback(True)
    assert seen == TRANSITIONS[status]


def test_every_status_has_a_row_in_the_table_and_none_follows_itself() -> None:
    assert set(TRANSITIONS) == set(TaskStatus)
    assert not any(may_follow(status, status) for status in TaskStatus)


def test_a_final_status_is_left_by_a_manual_retry_alone() -> None:
    for status in FINISHED:
        assert TRANSITIONS[status] == {TaskStatus.READY, TaskStatus.BLOCKED}


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_no_outcome_changes_a_task_that_has_finished(status: TaskStatus) -> None:
    result = base.enqueue()
    claimed = claim_one()
    Task.objects.filter(id=result.id).update(status=status, finished_at=timezone.now())
    for kind in OutcomeKind:
        with transaction.atomic():
            end(claimed, kind)
            assert task_of(result).status == status
            transaction.set_rollback(True)


NOW = timezone.now()
IMPOSSIBLE_TASKS: dict[str, dict[str, Any]] = {
    "an unknown status": {"status": "running!"},
    "an unknown status with an end": {"status": "running!", "finished_at": NOW},
    "a priority above the range": {"priority": 101},
    "a priority below the range": {"priority": -101},
    "an end without a final status": {"finished_at": NOW},
    "more running leases than workers": {"running_leases": 2},
    "more successes than workers": {"successes": 2},
    "fewer than no running leases": {"running_leases": -1},
    "fewer than no successes": {"successes": -1},
    "fewer than no open slots": {"open_slots": -1},
    **{f"{status} without an end": {"status": status} for status in sorted(FINISHED)},
    **{
        f"{status} with an end": {"status": status, "finished_at": NOW}
        for status in sorted(set(TaskStatus) - FINISHED)
    },
}
IMPOSSIBLE_LEASES: dict[str, dict[str, Any]] = {
    "an unknown status": {"status": "held"},
    "an unknown status with an end": {"status": "held", "finished_at": NOW},
    "running with an end": {"finished_at": NOW},
    **{
        f"{status} without an end": {"status": status}
        for status in sorted(set(LeaseStatus) - {LeaseStatus.RUNNING})
    },
}


@pytest.mark.parametrize("changes", IMPOSSIBLE_TASKS.values(), ids=IMPOSSIBLE_TASKS)
def test_the_database_refuses_an_impossible_task(changes: dict[str, Any]) -> None:
    result = echo.enqueue()
    with pytest.raises(IntegrityError), transaction.atomic():
        Task.objects.filter(id=result.id).update(**changes)


@pytest.mark.parametrize("changes", IMPOSSIBLE_LEASES.values(), ids=IMPOSSIBLE_LEASES)
def test_the_database_refuses_an_impossible_lease(changes: dict[str, Any]) -> None:
    echo.enqueue()
    claimed = claim_one()
    with pytest.raises(IntegrityError), transaction.atomic():
        Lease.objects.filter(id=claimed.lease_id).update(**changes)


def test_the_database_refuses_two_leases_of_one_attempt() -> None:
    echo.enqueue()
    lease = lease_of(claim_one())
    lease.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        lease.save(force_insert=True)


def test_the_rows_of_the_tables_here_are_refused_for_their_own_reason() -> None:
    """Else the tests above would pass for any row."""
    moment: datetime = NOW
    result = echo.enqueue()
    Task.objects.filter(id=result.id).update(priority=100)
    claimed = claim_one()
    run_out(claimed)
    Lease.objects.filter(id=claimed.lease_id).update(status="lost", finished_at=moment)
    Task.objects.filter(id=result.id).update(status="failed", finished_at=moment)
