"""Starting, cancelling and reading operations.

Starts and cancels are audited in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from django.db import IntegrityError
from django.db.models import QuerySet
from django.db.transaction import atomic

from taskqueue.access.users import identity_of
from taskqueue.core.refusals import refusal as _
from taskqueue.core.uuid7 import uuid7
from taskqueue.declarations.payload import storable
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.audit_text import choice_text
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.control.task_verbs import bulk_verb
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.operations.walking import estimate, newest_id
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import OperationDoesNotExist, TransitionRefused
from taskqueue.models.operation import Operation, OperationStatus
from taskqueue.models.parts import DatabaseClock

# The most tasks that may be chosen one by one.
MOST_IDS = 10_000
LONGEST_QUERY = 2000
# The most seconds before an operation begins; for later times there are schedules.
LONGEST_DELAY = 3600


def start_operation(
    verb: str,
    which: TaskFilter,
    *,
    query: str = "",
    by: object = "",
    reason: str = "",
    arguments: Mapping[str, Any] | None = None,
    operation_id: UUID | None = None,
    delay: float | timedelta = 0,
) -> Operation:
    """Start a verb on all matching tasks; workers carry it out in the background.

    `verb` is one of `BULK_VERBS`; `reschedule` takes `{"run_after": a datetime or a duration}`,
    `update` takes `{"changes": {an option: its value}}`, the others take no arguments. `query` is
    the text of the search, if the filter was typed as one; it is shown. Tasks that are enqueued
    from now on are left out. The operation begins after `delay`, in seconds or as a duration, at
    most an hour; until then `cancel_operation` undoes it. A second call with the same
    `operation_id` starts nothing: it returns the first operation, with `is_new` False. Raises
    ValueError or `InvalidTask` before anything is written; ValueError also if the operation of that
    id is a different one: with another verb, for other tasks, or requested by somebody else.
    """
    stored = bulk_verb(verb).stored(arguments or {})
    if which.ids is not None and len(which.ids) > MOST_IDS:
        raise ValueError(_(
            "At most {most_ids} tasks are chosen one by one; use a filter for more.",
            most_ids=MOST_IDS,
        ))  # fmt: skip
    pause = _delay_of(delay)
    who = person(by, reason)
    connection = project_connection()
    expected = estimate(verb, which, sample=0)
    starts_at = dialect_for(connection).now(connection) + pause if pause else None
    operation = Operation(
        id=operation_id or uuid7(),
        verb=verb,
        query=storable(query, limit=LONGEST_QUERY),
        chosen={"which": which.to_json()},
        arguments=stored,
        expected=None if expected.is_capped else expected.fitting,
        last_id=newest_id(connection),
        requested_by=who.by,
        requester=identity_of(by) or "",
        reason=who.reason,
        starts_at=starts_at,
    )
    try:
        with atomic(using=connection.alias):
            operation.save(using=connection.alias, force_insert=True)
            act = Act(str(operation.id), detail=f"{verb}: {choice_text(which, operation.query)}")
            audit(connection, "operation", "start", [act], person=who)
            wake(connection, ANYWHERE)
    except IntegrityError:
        if operation_id is None:
            raise
        found = get_operation(operation_id)
        if not _is_same(found, operation):
            raise ValueError(_(
                "Operation {operation_id} exists, and is a different one.",
                operation_id=operation_id,
            )) from None  # fmt: skip
        return found
    started = get_operation(operation.id)
    started.is_new = True
    return started


def cancel_operation(
    operation_id: UUID | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> Operation:
    """Cancel an operation; completed changes are kept.

    Raises `OperationDoesNotExist`, and `TransitionRefused` if it has ended.
    """
    connection = project_connection()
    found = get_operation(operation_id)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        rows = Operation.objects.using(connection.alias).filter(id=found.id)
        subject = _("Operation {operation}", operation=found.id)
        require_seen(rows.select_for_update().get(), seen, subject)
        rows = rows.filter(finished_at=None)
        now = dialect_for(connection).now(connection)
        if not rows.update(status=OperationStatus.CANCELLED.value, finished_at=now):
            status = get_operation(found.id).status
            raise TransitionRefused(_(
                "Operation {operation} is {status}, and cannot be cancelled.",
                operation=found.id, status=status,
            ))  # fmt: skip
        act = Act(str(found.id), before=found.status)
        audit(connection, "operation", "cancel", [act], person=person(by, reason))
    return get_operation(found.id)


def _delay_of(delay: float | timedelta) -> timedelta:
    try:
        pause = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
    except (TypeError, ValueError, OverflowError):
        pause = timedelta(-1)
    if not timedelta(0) <= pause <= timedelta(seconds=LONGEST_DELAY):
        raise ValueError(_(
            "delay must be from 0 to {longest_delay} seconds, not {delay!r}.",
            longest_delay=LONGEST_DELAY, delay=delay,
        ))  # fmt: skip
    return pause


def _is_same(found: Operation, asked: Operation) -> bool:
    """Searches are compared as text, because `after:2h` means another time each second."""
    if found.verb != asked.verb or found.requester != asked.requester:
        return False
    if not asked.requester and found.requested_by != asked.requested_by:
        return False
    if found.query or asked.query:
        return found.query == asked.query
    return bool(found.chosen["which"] == asked.chosen["which"])


def operations() -> QuerySet[Operation]:
    """Return all operations, the newest first, without the ids that were selected one by one."""
    return Operation.objects.using(database_alias()).order_by("-id").defer("chosen")


def requested_by(by: object) -> QuerySet[Operation]:
    """Return the operations that this user, or somebody by this name, requested, newest first."""
    identity = identity_of(by)
    if identity is None:
        return operations().filter(requester="", requested_by=person(by, "").by)
    return operations().filter(requester=identity)


def undoable(by: object) -> QuerySet[Operation]:
    """Return those of the user's operations that have not begun."""
    open_ones = requested_by(by).filter(finished_at__isnull=True, started_at__isnull=True)
    return open_ones.filter(starts_at__gt=DatabaseClock())


def get_operation(operation_id: UUID | str) -> Operation:
    """Return the operation with this id. Raises `OperationDoesNotExist`."""
    try:
        return Operation.objects.using(database_alias()).get(id=UUID(str(operation_id)))
    except (ValueError, Operation.DoesNotExist):
        raise OperationDoesNotExist(_(
            "There is no operation {operation_id}.", operation_id=operation_id
        )) from None  # fmt: skip


def which_of(operation: Operation) -> TaskFilter:
    """Return the filter of an operation's tasks. Raises ValueError if it cannot be read."""
    return TaskFilter.from_json(operation.chosen["which"])


@dataclass(kw_only=True)
class Walk:
    """The progress of an operation, in addition to `next_after`."""

    # Whether it has visited all tasks once.
    is_through: bool = False
    # Tasks that others had locked when it visited them; it retries them at the end.
    held: list[UUID] = field(default_factory=list)
    # How often it has retried them.
    tries: int = 0
    # How many chunks in a row an error has ended.
    failures: int = 0
    # How many tasks refused the changes.
    refused: int = 0
    # The reason of the first refusal.
    refusal: str = ""

    @classmethod
    def of(cls, operation: Operation) -> Self:
        """Return the progress that the row stores."""
        walk = operation.chosen.get("walk", {})
        known = {name: walk[name] for name in vars(cls()) if name in walk}
        return cls(**known | {"held": [UUID(text) for text in walk.get("held", ())]})

    def write(self, operation: Operation) -> None:
        """Write the progress to the row, without saving it."""
        held = [str(task_id) for task_id in self.held]
        operation.chosen = {**operation.chosen, "walk": {**vars(self), "held": held}}


def held_count(operation: Operation) -> int:
    """Return how many tasks it will retry because others had locked them."""
    return len(operation.chosen.get("walk", {}).get("held", ()))
