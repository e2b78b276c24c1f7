"""End attempts of lost workers at once, by hand.

Normally a task waits until its lease runs out, because a worker that is only cut off may still run
the body. A person who knows better ends the lease. It is fenced: the worker's record changes no row
then, and its next ping ends the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import TaskStatus
from taskqueue.engine.control.locking import locked
from taskqueue.engine.lost import ENDED_BY_HAND, LostAttempt, lost_attempts
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.takeover import record_lost
from taskqueue.engine.tally import Tally
from taskqueue.models import Lease


class EndedByHand(NamedTuple):
    """The new status of a task, and its attempts that were ended."""

    status: str
    attempts: list[LostAttempt]


def lost_among(
    connection: BaseDatabaseWrapper, leases: Sequence[Lease], *, skip_locked: bool = False
) -> tuple[list[LostAttempt], frozenset[UUID]]:
    """Return those of these locked leases whose worker is lost, and the tasks that others hold.

    With `skip_locked` the tasks of the former are locked, by id, and those that others hold are
    left out: to end their attempts would be to wait for them.
    """
    lease_ids = {lease.id for lease in leases}
    attempts = [
        attempt
        for attempt in lost_attempts(connection, {lease.task_id for lease in leases})
        if attempt.lease_id in lease_ids
    ]
    if not (attempts and skip_locked):
        return attempts, frozenset()
    wanted = {attempt.task_id for attempt in attempts}
    tasks = locked(connection, sorted(wanted), frozenset(TaskStatus), skip_locked=True)
    missed = frozenset(wanted - {task.id for task in tasks})
    return [attempt for attempt in attempts if attempt.task_id not in missed], missed


def end_attempts(
    connection: BaseDatabaseWrapper, attempts: Sequence[LostAttempt], kind: OutcomeKind
) -> Mapping[UUID, EndedByHand]:
    """End these attempts, whose leases are locked, as lost; return what came of it, by task.

    With `OutcomeKind.LOST` that counts as a crash, with `OutcomeKind.FENCED` it counts as nothing,
    and the task is ready. Where a stop was asked for, the task is cancelled either way.
    """
    if not attempts:
        return {}
    recorded = record_lost(
        connection,
        [attempt.lease_id for attempt in attempts],
        ENDED_BY_HAND,
        policy=EndPolicy.of(get_settings()),
        tally=Tally(),
        kind=kind,
    )
    ended: dict[UUID, EndedByHand] = {}
    for attempt in attempts:
        if attempt.lease_id in recorded:
            earlier = ended[attempt.task_id].attempts if attempt.task_id in ended else []
            status = recorded[attempt.lease_id].task_status
            ended[attempt.task_id] = EndedByHand(status, [*earlier, attempt])
    return ended


def ended_words(ended: Mapping[UUID, EndedByHand]) -> dict[UUID, str]:
    """Return the text of the audit for each task."""
    return {
        task_id: "; ".join(
            f"attempt {attempt.attempt} ended: its worker {attempt.worker!r} was lost"
            for attempt in by_hand.attempts
        )
        for task_id, by_hand in ended.items()
    }
