"""Cancel tasks, and ask running ones to stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.engine import multi_worker
from taskqueue.engine.control.abandoned import end_attempts, ended_words, lost_among
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.control.locking import Statuses, locked, locked_leases
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.ends import cancel_waiting
from taskqueue.engine.lost import LostAttempt
from taskqueue.engine.notify import wake
from taskqueue.engine.retention import EndPolicy
from taskqueue.models import Lease

UNFINISHED = frozenset({*PENDING, TaskStatus.RUNNING})


def cancel_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses,
    person: Person,
    skip_locked: bool = False,
    ended_by: str = "cancel",
) -> dict[UUID, str]:
    """Stop those that run and cancel those that wait; their statuses then.

    `ended_by` is as for `request_stop_each`. Locks leases, then tasks; `skip_locked` leaves out
    those that somebody else has.
    """
    asked = request_stop_each(
        connection, ids, statuses=statuses, person=person, skip_locked=skip_locked,
        ended_by=ended_by,
    )  # fmt: skip
    rest = [task_id for task_id in ids if task_id not in asked]
    waiting = locked(connection, rest, PENDING & statuses, skip_locked=skip_locked)
    if waiting:
        cancel_waiting(connection, waiting, reason=person.reason)
        acts = [Act(str(task.id), before=task.status) for task in waiting]
        audit(connection, "task", "cancel", acts, person=person)
    return asked | {task.id: TaskStatus.CANCELLED.value for task in waiting}


def request_stop_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses,
    person: Person,
    skip_locked: bool = False,
    ended_by: str = "stop",
) -> dict[UUID, str]:
    """Ask attempts that run to stop, and end those of lost workers; the statuses of their tasks.

    A task of several workers takes no further ones; if nobody runs it, it ends as cancelled. Who
    asked first is remembered, who asks later is audited. `ended_by` is the verb with which the end
    of a lost worker's attempt is audited; if empty, such attempts keep their leases.
    """
    if TaskStatus.RUNNING not in statuses:
        return {}
    running, missed = locked_leases(connection, ids, skip_locked=skip_locked)
    policy = EndPolicy.of(get_settings())
    rest = [task_id for task_id in ids if task_id not in missed]
    closed = multi_worker.close(connection, rest, policy=policy, reason=person.reason)
    # A worker may have taken one in between. Its lease is not waited for: the task is held by now.
    late, _ = locked_leases(connection, list(closed), skip_locked=True)
    lost: list[LostAttempt] = []
    if ended_by:
        # Without a wait, after those that may wait.
        lost, held = lost_among(connection, running, skip_locked=skip_locked)
        running = [lease for lease in running if lease.task_id not in held]
    _ask(connection, [*running, *late], person)
    asked = {lease.task_id: TaskStatus.RUNNING.value for lease in running}
    ended = end_attempts(connection, lost, OutcomeKind.LOST)
    # Those that waited for a next worker have no attempt that could be asked.
    idle = {each: "" for each in closed if each not in asked}
    details = _asked_anew(running, person) | idle | ended_words(ended)
    for verb in dict.fromkeys(("stop", ended_by or "stop")):
        acts = [
            Act(str(each), TaskStatus.RUNNING.value, detail)
            for each, detail in details.items()
            if verb == (ended_by if each in ended else "stop")
        ]
        audit(connection, "task", verb, acts, person=person)
    return asked | closed | {task_id: each.status for task_id, each in ended.items()}


def _ask(connection: BaseDatabaseWrapper, leases: Iterable[Lease], person: Person) -> None:
    """Ask the attempts of locked leases to stop, but for those that were asked before."""
    unasked = [lease.id for lease in leases if lease.stop_requested_at is None]
    rows = Lease.objects.using(connection.alias).filter(id__in=unasked, stop_requested_at=None)
    if unasked and rows.update(
        stop_requested_at=dialect_for(connection).now(connection),
        stop_requested_by=person.by,
        stop_reason=person.reason,
    ):
        wake(connection, "stop")


def _asked_anew(running: Iterable[Lease], person: Person) -> dict[UUID, str]:
    """The tasks for which this person is one more that asks, with who did before."""
    details: dict[UUID, str] = {}
    for lease in running:
        if lease.stop_requested_at is None:
            details[lease.task_id] = ""
        elif lease.stop_requested_by != person.by:
            details.setdefault(lease.task_id, f"asked before by {lease.stop_requested_by!r}")
    return details
