"""Serve operations, a duty of every worker: one chunk of one operation in one transaction.

A worker that is killed has done and recorded a whole chunk, or nothing. Two workers never serve the
same operation, because its row is locked.
"""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F
from django.db.models.fields.json import KeyTransform

from taskqueue.declarations.payload import storable
from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.engine.control.audit import person
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.operations.stored import Walk, which_of
from taskqueue.engine.operations.walking import fitting, narrowed, next_look
from taskqueue.engine.statement import Fact
from taskqueue.engine.transient_errors import is_busy
from taskqueue.models.operation import Operation, OperationStatus

logger = logging.getLogger("taskqueue.worker")

HAS_OPERATIONS = Fact.of("EXISTS (SELECT 1 FROM taskqueue_operation WHERE finished_at IS NULL)")
# Tasks of one step; the worker claims and records between two.
CHUNK = 200
# Tasks that somebody holds that are remembered; then it comes back to them before it goes on.
MOST_HELD = CHUNK
# How often it comes back to what somebody held, and after how many seconds.
HELD_TRIES, HELD_PAUSE = 5, 1.0
# Errors in a row with which an operation fails.
ERROR_TRIES = 5
# Seconds after the first error until another try, doubled with each.
ERROR_PAUSE, LONGEST_ERROR_PAUSE = 1.0, 30.0
MOST_LOOKED_AT = 50
LONGEST_ERROR = 2000
PROGRESS = (
    "chosen", "status", "matched", "done", "next_after", "error", "started_at", "progressed_at",
    "finished_at",
)  # fmt: skip


def step(connection: BaseDatabaseWrapper) -> bool:
    """Do a chunk of the operation whose turn it is; whether there was one to do.

    Raises what the database raises when it is in trouble.
    """
    with installed(connection):
        return any(_serve(connection, operation_id) for operation_id in _in_turn(connection))


def _in_turn(connection: BaseDatabaseWrapper) -> list[UUID]:
    """The open ones that need not rest, whoever has waited longest first.

    A verb that a newer version brought is left to the workers of that version.
    """
    now = dialect_for(connection).now(connection)
    rows = Operation.objects.using(connection.alias).filter(
        finished_at__isnull=True, verb__in=sorted(BULK_VERBS)
    )
    turns = rows.order_by(F("progressed_at").asc(nulls_first=True), "id").values_list(
        "id",
        "progressed_at",
        KeyTransform("tries", KeyTransform("walk", "chosen")),
        KeyTransform("failures", KeyTransform("walk", "chosen")),
    )
    return [
        operation_id
        for operation_id, progressed_at, tries, failures in turns[:MOST_LOOKED_AT]
        if not _rests(now, progressed_at, int(tries or 0), int(failures or 0))
    ]


def _rests(now: datetime, progressed_at: datetime | None, tries: int, failures: int) -> bool:
    if progressed_at is None:
        return False
    pause = HELD_PAUSE if tries else 0.0
    if failures:
        pause = min(LONGEST_ERROR_PAUSE, ERROR_PAUSE * 2 ** (failures - 1))
    return (now - progressed_at).total_seconds() < pause


def _serve(connection: BaseDatabaseWrapper, operation_id: UUID) -> bool:
    """Do a chunk of one operation, unless somebody else does or it has ended."""
    session = connection.connection
    try:
        with orm_transaction(connection):
            operation = _locked(connection, operation_id)
            if operation is not None:
                _advance(connection, operation)
            return operation is not None
    except Exception as error:  # One operation must not keep a worker from the others.
        if connection.connection is not session or is_busy(error) or not connection.is_usable():
            raise  # Nobody's fault here: Django may have opened another session by now.
        logger.exception("Operation not advanced operation=%s", operation_id)
        with orm_transaction(connection):
            operation = _locked(connection, operation_id)
            if operation is not None:
                _note_error(connection, operation, error)
        return True


def _locked(connection: BaseDatabaseWrapper, operation_id: UUID) -> Operation | None:
    rows = Operation.objects.using(connection.alias).filter(id=operation_id, finished_at=None)
    return rows.select_for_update(skip_locked=True).first()


def _advance(connection: BaseDatabaseWrapper, operation: Operation) -> None:
    """Do the next chunk and save the progress. Locks the operation, then what the verb locks."""
    verb, walk = BULK_VERBS[operation.verb], Walk.of(operation)
    if walk.is_through or len(walk.held) >= MOST_HELD:
        _come_back(connection, operation, verb, walk)
    else:
        _go_on(connection, operation, verb, walk)
    walk.failures = 0
    operation.error = ""
    if walk.is_through and not walk.held:
        operation.status = OperationStatus.FINISHED.value
        operation.error = _refused_words(walk)
    _save(connection, operation, walk)


def _go_on(
    connection: BaseDatabaseWrapper, operation: Operation, verb: TaskVerb, walk: Walk
) -> None:
    look = next_look(
        connection,
        narrowed(which_of(operation), verb),
        verb,
        after=operation.next_after,
        last=operation.last_id,
        limit=CHUNK,
    )
    operation.matched += len(look.ids)
    walk.held += _do(connection, operation, verb, walk, look.ids)
    operation.next_after = look.ids[-1] if look.reached is None and look.ids else look.reached
    walk.is_through = look.reached is None


def _come_back(
    connection: BaseDatabaseWrapper, operation: Operation, verb: TaskVerb, walk: Walk
) -> None:
    """Try tasks again that others held. After some tries they count as refused."""
    ids, rest = walk.held[:CHUNK], walk.held[CHUNK:]
    left = _do(connection, operation, verb, walk, ids)
    walk.tries += 1
    if not left or walk.tries >= HELD_TRIES:
        left, walk.tries = [], 0
    walk.held = left + rest


def _do(
    connection: BaseDatabaseWrapper,
    operation: Operation,
    verb: TaskVerb,
    walk: Walk,
    ids: list[UUID],
) -> list[UUID]:
    """Do it to a chunk; return the tasks that only a lock of others kept from it."""
    given = verb.given(operation.arguments)
    statuses = verb.statuses_among(which_of(operation).statuses)
    done = frozenset(
        verb.each(
            Selection(
                connection=connection,
                ids=ids,
                statuses=statuses,
                person=person(operation.requested_by, operation.reason),
                is_bulk=True,
            ),
            **given,
        )
    )
    operation.done += len(done)
    missed = [task_id for task_id in ids if task_id not in done]
    if not missed:
        return []
    left = fitting(connection, TaskFilter(ids=missed, statuses=sorted(statuses)), verb)
    ids = sorted(left.values_list("id", flat=True))
    refused = verb.refusals(connection, ids, **given)
    walk.refused += len(refused)
    walk.refusal = walk.refusal or next(iter(refused.values()), "")
    return [task_id for task_id in ids if task_id not in refused]


def _refused_words(walk: Walk) -> str:
    """Why it was not done to all, as far as that lies in what they were to be given."""
    if not walk.refused:
        return ""
    tasks = "1 task" if walk.refused == 1 else f"{walk.refused} tasks"
    return storable(f"{tasks} refused the changes. {walk.refusal}", limit=LONGEST_ERROR)


def _note_error(connection: BaseDatabaseWrapper, operation: Operation, error: Exception) -> None:
    walk = Walk.of(operation)
    walk.failures += 1
    text = f"{type(error).__name__}: {error}"
    operation.error = storable(text, limit=LONGEST_ERROR)
    if walk.failures >= ERROR_TRIES:
        operation.status = OperationStatus.FAILED.value
    _save(connection, operation, walk)


def _save(connection: BaseDatabaseWrapper, operation: Operation, walk: Walk) -> None:
    """Progress, in the transaction of what was done."""
    now = dialect_for(connection).now(connection)
    operation.started_at = operation.started_at or now
    operation.progressed_at = now
    if operation.status == OperationStatus.WAITING:
        operation.status = OperationStatus.RUNNING.value
    elif operation.status != OperationStatus.RUNNING:
        operation.finished_at = now
    walk.write(operation)
    operation.save(using=connection.alias, update_fields=PROGRESS)
