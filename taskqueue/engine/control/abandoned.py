"""Attempts of lost workers, ended at once because a person says so.

The lease decides who may take a task over, for a worker that is only cut off may still run the
body. A person who knows better ends the lease: it is fenced, so that the worker's record changes no
row, and its next ping ends the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.control.locking import locked
from taskqueue.engine.lost import (
    ENDED_BY_HAND,
    LostAttempt,
    is_held_by_lost_worker,
    lost_attempts,
)
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.takeover import LOST
from taskqueue.engine.tally import Tally
from taskqueue.models import Lease, Task


class Ended(NamedTuple):
    """The new status of a task, and the attempts of lost workers that were ended."""

    status: str
    attempts: list[LostAttempt]


def lost_among(
    connection: BaseDatabaseWrapper, leases: Sequence[Lease], *, skip_locked: bool = False
) -> tuple[list[LostAttempt], frozenset[UUID]]:
    """Those of these locked leases whose worker is lost; and the tasks of which others hold rows.

    With `skip_locked` the tasks of the former are locked, by id, and those that others hold are
    left out: to end their attempts would be to wait for them.
    """
    mine = {lease.id for lease in leases}
    found = [
        each
        for each in lost_attempts(connection, {lease.task_id for lease in leases})
        if each.lease_id in mine
    ]
    if not (found and skip_locked):
        return found, frozenset()
    wanted = {each.task_id for each in found}
    tasks = locked(connection, sorted(wanted), frozenset(TaskStatus), skip_locked=True)
    missed = frozenset(wanted - {task.id for task in tasks})
    return [each for each in found if each.task_id not in missed], missed


def end_attempts(
    connection: BaseDatabaseWrapper, found: Sequence[LostAttempt], kind: OutcomeKind
) -> Mapping[UUID, Ended]:
    """End these attempts, whose leases are locked, as `lost`; what came of it, by task.

    With `OutcomeKind.LOST` that counts as a crash, with `OutcomeKind.FENCED` it counts as nothing,
    and the task is ready. Where a stop was asked for, the task is cancelled either way.
    """
    if not found:
        return {}
    outcomes = [
        Outcome(each.lease_id, kind, 0.0, error_class=LOST, error_message=ENDED_BY_HAND)
        for each in found
    ]
    policy = EndPolicy.of(get_settings())
    # A row of its own in the counts, as of all that no worker records.
    recorded = record(connection, outcomes, policy=policy, tally=Tally())
    ended: dict[UUID, Ended] = {}
    for each in found:
        if each.lease_id in recorded:
            earlier = ended[each.task_id].attempts if each.task_id in ended else []
            status = recorded[each.lease_id].task_status
            ended[each.task_id] = Ended(status, [*earlier, each])
    return ended


def ended_words(ended: Mapping[UUID, Ended]) -> dict[UUID, str]:
    """The text of the audit for each task."""
    return {
        task_id: "; ".join(
            f"attempt {each.attempt} ended: its worker {each.worker!r} was lost"
            for each in of_task.attempts
        )
        for task_id, of_task in ended.items()
    }


def runs_on(connection: BaseDatabaseWrapper) -> Q:
    """The tasks that run, and of which no lost worker holds an attempt."""
    return Q(status=TaskStatus.RUNNING) & ~is_held_by_lost_worker(connection)


def is_held_by_lost(connection: BaseDatabaseWrapper, task_id: UUID) -> bool:
    """Whether a lost worker holds an attempt of the task."""
    return bool(lost_attempts(connection, [task_id], limit=1))


def was_lost(
    connection: BaseDatabaseWrapper, task: Task, leases: Iterable[Lease] | None = None
) -> bool:
    """Whether a lost worker holds the task, or somebody ended its last attempt for that.

    `leases` are its latest attempts, where these are known already.
    """
    if task.status == TaskStatus.RUNNING and is_held_by_lost(connection, task.id):
        return True
    if leases is None:
        lost = Lease.objects.using(connection.alias).filter(
            task_id=task.id, status=LeaseStatus.LOST
        )
        leases = lost.only("attempt", "status", "error_message")
    is_shared = task.workers > 1 or task.broadcast
    since = task.attempts_before_retry if is_shared else task.attempt
    return any(
        lease.attempt >= since
        and lease.status == LeaseStatus.LOST
        and lease.error_message == ENDED_BY_HAND
        for lease in leases
    )
