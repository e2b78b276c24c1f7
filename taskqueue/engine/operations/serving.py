"""Serving operations, a duty of every worker: one chunk of one operation in one transaction.

If a worker is killed, its chunk has been done and recorded completely, or not at all. Two workers
never serve the same operation, because its row is locked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q
from django.db.models.fields.json import KeyTransform

from taskqueue.core.naming import counted
from taskqueue.declarations.payload import storable
from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.engine.control.audit import person
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import Selection, Statuses
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.operations.asking import Walk, which_of
from taskqueue.engine.operations.walking import Walker, fitting
from taskqueue.engine.statement import Moment
from taskqueue.engine.transient_errors import is_busy
from taskqueue.engine.webhooks.replaying import REPLAY, replay_chunk
from taskqueue.models.operation import Operation, OperationStatus

logger = logging.getLogger("taskqueue.worker")

NEXT_OPERATION = Moment.of(
    "SELECT min(COALESCE(starts_at, created_at)) FROM taskqueue_operation WHERE finished_at IS NULL"
)
# The most tasks of one step; between two steps the worker claims and records.
CHUNK = 200
# The most locked tasks to remember; then the operation retries them before it goes on.
MOST_HELD = CHUNK
# How often it retries tasks that others had locked, and after how many seconds.
HELD_TRIES, HELD_PAUSE = 5, 1.0
# An operation fails after this many errors in a row.
ERROR_TRIES = 5
# Seconds after the first error until another try; they double with each error.
ERROR_PAUSE, LONGEST_ERROR_PAUSE = 1.0, 30.0
MOST_LOOKED_AT = 50
# The verbs on tasks, and one on events, which is not in the table of verbs on tasks.
KNOWN_VERBS = frozenset({*BULK_VERBS, REPLAY})
LONGEST_ERROR = 2000
PROGRESS = (
    "chosen", "status", "matched", "done", "next_after", "error", "started_at", "progressed_at",
    "finished_at",
)  # fmt: skip


def step(connection: BaseDatabaseWrapper) -> bool:
    """Run a chunk of the operation whose turn it is. Return whether there was one.

    Raises the database's error if the database is in trouble.
    """
    with installed(connection):
        return any(_serve(connection, operation_id) for operation_id in _in_turn(connection))


def _in_turn(connection: BaseDatabaseWrapper) -> list[UUID]:
    """Return the open operations that need not pause, those that have waited longest first.

    A verb that only a newer version knows is left to workers of that version.
    """
    now = dialect_for(connection).now(connection)
    rows = Operation.objects.using(connection.alias).filter(
        Q(starts_at=None) | Q(starts_at__lte=now),
        finished_at__isnull=True,
        verb__in=sorted(KNOWN_VERBS),
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
        if progressed_at is None
        or (now - progressed_at).total_seconds() >= _pause(int(tries or 0), int(failures or 0))
    ]


def _pause(tries: int, failures: int) -> float:
    if failures:
        return min(LONGEST_ERROR_PAUSE, ERROR_PAUSE * 2.0 ** (failures - 1))
    return HELD_PAUSE if tries else 0.0


def _serve(connection: BaseDatabaseWrapper, operation_id: UUID) -> bool:
    """Run a chunk of one operation, unless another worker does so or the operation has ended."""
    session = connection.connection
    try:
        return _with_lock(connection, operation_id, Chunk.advance)
    except Exception as error:  # One operation must not keep a worker from the others.
        if connection.connection is not session or is_busy(error) or not connection.is_usable():
            raise  # The session is in trouble, not the operation.
        logger.exception("Operation not advanced operation=%s", operation_id)
        _with_lock(connection, operation_id, partial(Chunk.note, error=error))
        return True


def _with_lock(
    connection: BaseDatabaseWrapper, operation_id: UUID, act: Callable[[Chunk], None]
) -> bool:
    """Lock an open operation and act on its next chunk, unless another session has the lock."""
    with orm_transaction(connection):
        rows = Operation.objects.using(connection.alias).filter(id=operation_id, finished_at=None)
        operation = rows.select_for_update(skip_locked=True).first()
        if operation is not None:
            act(Chunk(connection, operation))
        return operation is not None


class Chunk:
    """The next chunk of a locked operation, and its progress."""

    def __init__(self, connection: BaseDatabaseWrapper, operation: Operation) -> None:
        self._connection = connection
        self._operation = operation
        self._walk = Walk.of(operation)

    def advance(self) -> None:
        """Run the chunk and save the progress. Takes the locks of the verb."""
        if self._operation.verb == REPLAY:
            replay_chunk(self._connection, self._operation)
        else:
            self._advance_over_tasks()
        self._walk.failures = 0
        self._save()

    @property
    def _verb(self) -> TaskVerb:
        return BULK_VERBS[self._operation.verb]

    def _advance_over_tasks(self) -> None:
        operation, walk, which = self._operation, self._walk, which_of(self._operation)
        statuses = self._verb.statuses_among(which.statuses)
        if walk.is_through or len(walk.held) >= MOST_HELD:
            self._come_back(statuses)
        else:
            walker = Walker(self._connection, which, self._verb, operation.last_id)
            look = walker.look(operation.next_after, limit=CHUNK)
            operation.matched += len(look.ids)
            walk.held += self._do(look.ids, statuses)
            operation.next_after = look.reached or (look.ids[-1] if look.ids else None)
            walk.is_through = look.reached is None
        operation.error = ""
        if walk.is_through and not walk.held:
            operation.status = OperationStatus.FINISHED.value
            if walk.refused:  # Give the reason if the tasks refused the changes.
                tasks = counted(walk.refused, "task")
                words = f"{tasks} refused the changes. {walk.refusal}"
                operation.error = storable(words, limit=LONGEST_ERROR)

    def note(self, error: Exception) -> None:
        """Save an error. After too many errors in a row, the operation fails."""
        self._walk.failures += 1
        text = f"{type(error).__name__}: {error}"
        self._operation.error = storable(text, limit=LONGEST_ERROR)
        if self._walk.failures >= ERROR_TRIES:
            self._operation.status = OperationStatus.FAILED.value
        self._save()

    def _come_back(self, statuses: Statuses) -> None:
        """Retry tasks that others had locked. After some tries they count as refused."""
        walk = self._walk
        ids, rest = walk.held[:CHUNK], walk.held[CHUNK:]
        left = self._do(ids, statuses)
        walk.tries += 1
        if not left or walk.tries >= HELD_TRIES:
            left, walk.tries = [], 0
        walk.held = left + rest

    def _do(self, ids: list[UUID], statuses: Statuses) -> list[UUID]:
        """Apply the verb to these tasks.

        Return those that were skipped only because they were locked.
        """
        operation, walk, connection = self._operation, self._walk, self._connection
        selection = Selection(
            connection=connection,
            ids=ids,
            statuses=statuses,
            person=person(operation.requested_by, operation.reason),
            is_bulk=True,
        )
        arguments = self._verb.given(operation.arguments)
        done = frozenset(self._verb.each(selection, **arguments))
        operation.done += len(done)
        missed = [task_id for task_id in ids if task_id not in done]
        if not missed:
            return []
        left = fitting(connection, TaskFilter(ids=missed, statuses=sorted(statuses)), self._verb)
        ids = sorted(left.values_list("id", flat=True))
        refused = self._verb.refusals(connection, ids, **arguments)
        walk.refused += len(refused)
        walk.refusal = walk.refusal or next(iter(refused.values()), "")
        return [task_id for task_id in ids if task_id not in refused]

    def _save(self) -> None:
        """Save the progress, in the transaction of the changes."""
        operation, now = self._operation, dialect_for(self._connection).now(self._connection)
        operation.started_at = operation.started_at or now
        operation.progressed_at = now
        if operation.status == OperationStatus.WAITING:
            operation.status = OperationStatus.RUNNING.value
        elif operation.status != OperationStatus.RUNNING:
            operation.finished_at = now
        self._walk.write(operation)
        operation.save(using=self._connection.alias, update_fields=PROGRESS)
