"""Cancelling tasks, asking running ones to stop, and ending attempts of lost workers at once.

Normally the task of a lost worker waits until its lease expires, because a worker that is only
disconnected may still be running the body. A person who knows that it is not can end the lease.
That is safe: the worker's record then changes no row, and its next ping ends the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.engine import multi_worker
from taskqueue.engine.control.audit import Act
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.ends import cancel_waiting
from taskqueue.engine.lost import ENDED_BY_HAND, LostAttempt, lost_attempts
from taskqueue.engine.notify import STOP, wake
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.takeover import record_lost
from taskqueue.engine.tally import Tally
from taskqueue.models import Lease

UNFINISHED = frozenset({*PENDING, TaskStatus.RUNNING})


class Ended(NamedTuple):
    """The new status of a task whose attempts were ended by hand, and the text of the audit."""

    status: str
    detail: str


def cancel_each(selection: Selection, *, ended_by: str = "cancel") -> dict[UUID, str]:
    """Stop running tasks and cancel waiting ones. Return their new statuses.

    `ended_by` is as for `request_stop_each`. Locks leases, then tasks.
    """
    asked = request_stop_each(selection, ended_by=ended_by)
    rest = [task_id for task_id in selection.ids if task_id not in asked]
    waiting = selection.of(rest, PENDING & selection.statuses).locked()
    if waiting:
        cancel_waiting(selection.connection, waiting, reason=selection.person.reason)
        selection.audit("cancel", [Act(str(task.id), before=task.status) for task in waiting])
    return asked | {task.id: TaskStatus.CANCELLED.value for task in waiting}


def request_stop_each(selection: Selection, *, ended_by: str = "stop") -> dict[UUID, str]:
    """Ask running attempts to stop, and end those of lost workers. Return the tasks' statuses.

    A task of several workers starts no further parts; if nobody runs it, it ends as cancelled. The
    person who asked first is stored; later requests are only audited. `ended_by` is the verb with
    which the end of a lost worker's attempt is audited; if it is empty, such attempts keep their
    leases.
    """
    if TaskStatus.RUNNING not in selection.statuses:
        return {}
    running, missed = selection.locked_leases()
    closed = multi_worker.close(
        selection.connection,
        [task_id for task_id in selection.ids if task_id not in missed],
        policy=EndPolicy.of(get_settings()),
        reason=selection.person.reason,
    )
    # A worker may have claimed one meanwhile. Its lease is not waited for, as the task is locked
    # now.
    late, _ = replace(selection, ids=list(closed), is_bulk=True).locked_leases()
    lost: list[LostAttempt] = []
    if ended_by:
        # Without waiting, after those for which it may wait.
        lost, held = lost_among(selection, running)
        running = [lease for lease in running if lease.task_id not in held]
    _ask(selection, [*running, *late])
    asked = {lease.task_id: TaskStatus.RUNNING.value for lease in running}
    ended = end_attempts(selection, lost, OutcomeKind.LOST)
    # A task that waited for its next worker has no attempt that could be asked to stop.
    details = _asked_anew(running, selection.person.by)
    details |= {task_id: "" for task_id in closed if task_id not in asked}
    selection.audit("stop", _acts({key: details[key] for key in details if key not in ended}))
    selection.audit(ended_by, _acts({task_id: end.detail for task_id, end in ended.items()}))
    return asked | closed | {task_id: end.status for task_id, end in ended.items()}


def lost_among(
    selection: Selection, leases: Sequence[Lease]
) -> tuple[list[LostAttempt], frozenset[UUID]]:
    """Return which of these locked leases have lost workers, and the tasks that others have locked.

    A bulk verb locks the tasks of the former by id, and skips those that others have locked,
    because ending their attempts would mean waiting for them.
    """
    lease_ids = {lease.id for lease in leases}
    attempts = [
        attempt
        for attempt in lost_attempts(selection.connection, {lease.task_id for lease in leases})
        if attempt.lease_id in lease_ids
    ]
    if not (attempts and selection.is_bulk):
        return attempts, frozenset()
    wanted = {attempt.task_id for attempt in attempts}
    missed = wanted - {task.id for task in selection.of(sorted(wanted)).locked()}
    return [attempt for attempt in attempts if attempt.task_id not in missed], frozenset(missed)


def end_attempts(
    selection: Selection, attempts: Sequence[LostAttempt], kind: OutcomeKind
) -> Mapping[UUID, Ended]:
    """End these attempts, whose leases are locked, as lost. Return the new statuses by task.

    `OutcomeKind.LOST` counts as a crash; `OutcomeKind.FENCED` counts as nothing, and the task
    becomes ready. If a stop was requested, the task is cancelled in both cases.
    """
    if not attempts:
        return {}
    recorded = record_lost(
        selection.connection,
        [attempt.lease_id for attempt in attempts],
        ENDED_BY_HAND,
        policy=EndPolicy.of(get_settings()),
        tally=Tally(),
        kind=kind,
    )
    ended: dict[UUID, Ended] = {}
    for attempt in attempts:
        if attempt.lease_id in recorded:
            detail = f"attempt {attempt.attempt} ended: its worker {attempt.worker!r} was lost"
            if attempt.task_id in ended:
                detail = f"{ended[attempt.task_id].detail}; {detail}"
            ended[attempt.task_id] = Ended(recorded[attempt.lease_id].task_status, detail)
    return ended


def _ask(selection: Selection, leases: Iterable[Lease]) -> None:
    """Ask the attempts of locked leases to stop, except those that were asked before."""
    unasked = [lease.id for lease in leases if lease.stop_requested_at is None]
    rows = Lease.objects.using(selection.connection.alias)
    if unasked and rows.filter(id__in=unasked, stop_requested_at=None).update(
        stop_requested_at=selection.now(),
        stop_requested_by=selection.person.by,
        stop_reason=selection.person.reason,
    ):
        wake(selection.connection, STOP)


def _asked_anew(running: Iterable[Lease], by: str) -> dict[UUID, str]:
    """Return the tasks that this person is new to ask, with those who asked before, if any."""
    details: dict[UUID, str] = {}
    for lease in running:
        if lease.stop_requested_at is None:
            details[lease.task_id] = ""
        elif lease.stop_requested_by != by:
            details.setdefault(lease.task_id, f"asked before by {lease.stop_requested_by!r}")
    return details


def _acts(details: Mapping[UUID, str]) -> list[Act]:
    return [
        Act(str(task_id), TaskStatus.RUNNING.value, detail) for task_id, detail in details.items()
    ]
