"""Parts of results: JSON values that a running body writes, fenced by its lease."""

from __future__ import annotations

from uuid import UUID

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

from taskqueue.conf import get_settings
from taskqueue.core.states import LeaseStatus
from taskqueue.declarations.payload import encode
from taskqueue.engine.connections import database_alias
from taskqueue.engine.dialect import execute, select
from taskqueue.engine.statement import Statement
from taskqueue.exceptions import InvalidArguments, LeaseEnded, TaskQueueError
from taskqueue.models import ResultPart

WRITTEN = "keep_result() comes before the first write_result() of an attempt."
# Several threads of a body may write at once: a thread that finds the number taken tries again.
TRIES = 1000
# Locks nothing: the lease is renewed meanwhile, even if the body has a long transaction. A part
# that is written while the lease ends stays with that attempt, whose parts are no longer read.
WRITE = Statement.of("""
    INSERT INTO taskqueue_resultpart (task_id, attempt, place, value, size_so_far, written_at)
    SELECT lease.task_id, lease.attempt, COALESCE(written.place + 1, 0), %(value)s,
        COALESCE(written.size_so_far, 0) + %(size)s, {now}
    FROM taskqueue_lease AS lease
    LEFT JOIN taskqueue_resultpart AS written ON written.task_id = lease.task_id
        AND written.attempt = lease.attempt AND written.place = (
            SELECT max(place)
            FROM taskqueue_resultpart
            WHERE task_id = lease.task_id AND attempt = lease.attempt
        )
    WHERE lease.id = %(lease)s AND lease.status = 'running'
        AND COALESCE(written.size_so_far, 0) + %(size)s <= %(most)s
    ON CONFLICT DO NOTHING
""")
STATE = Statement.of("""
    SELECT lease.status, COALESCE((
        SELECT max(size_so_far)
        FROM taskqueue_resultpart
        WHERE task_id = lease.task_id AND attempt = lease.attempt
    ), 0)
    FROM taskqueue_lease AS lease
    WHERE lease.id = %(lease)s
""")
# For a task of several workers, only parts of the same worker.
KEEP = Statement.of("""
    UPDATE taskqueue_resultpart
    SET attempt = (SELECT attempt FROM taskqueue_lease WHERE id = %(lease)s)
    WHERE task_id = (
            SELECT task_id FROM taskqueue_lease WHERE id = %(lease)s AND status = 'running'
        )
        AND attempt = (
            SELECT max(part.attempt)
            FROM taskqueue_lease AS own
            JOIN taskqueue_resultpart AS part ON part.task_id = own.task_id
                AND part.attempt < own.attempt
            JOIN taskqueue_lease AS earlier ON earlier.task_id = part.task_id
                AND earlier.attempt = part.attempt
            WHERE own.id = %(lease)s
                AND (NOT own.is_shared OR earlier.worker_id = own.worker_id)
                AND NOT EXISTS (
                    SELECT 1
                    FROM taskqueue_lease AS success
                    WHERE success.task_id = own.task_id AND success.status = 'succeeded'
                        AND success.attempt >= earlier.attempt
                        AND (NOT own.is_shared OR success.worker_id = own.worker_id)
                )
        )
""")


def write_part(connection: BaseDatabaseWrapper, part: object, *, lease_id: int) -> None:
    """Store a part of the result, in the caller's transaction if there is one.

    Raises `InvalidArguments` or `UnsupportedType` if JSON would change the part, or if the parts of
    the attempt together exceed MAX_RESULT, and `LeaseEnded` if the attempt has lost its lease.
    """
    most = get_settings().MAX_RESULT
    text = encode(part, limit=most, what="The part")
    for _ in range(TRIES):
        values = {"lease": lease_id, "value": text, "size": len(text), "most": most}
        if execute(connection, WRITE, **values):
            return
        size = _size_so_far(connection, lease_id)
        if size + len(text) > most:
            raise InvalidArguments(
                f"The parts of the result must be at most {most:,} bytes together, not "
                f"{size + len(text):,}. Store large data elsewhere, and write a reference to it."
            )
    raise TaskQueueError("Too many threads write parts of the result at once.")


def keep_parts(connection: BaseDatabaseWrapper, *, lease_id: int) -> int:
    """Take over the parts of the last attempt that wrote any. Return how many there are.

    Raises `TaskQueueError` if this attempt has already written a part, and `LeaseEnded`.
    """
    if _size_so_far(connection, lease_id):
        raise TaskQueueError(WRITTEN)
    try:
        with atomic(using=connection.alias):
            return execute(connection, KEEP, lease=lease_id)
    except IntegrityError:  # Another thread of the body has written a part meanwhile.
        raise TaskQueueError(WRITTEN) from None


def _size_so_far(connection: BaseDatabaseWrapper, lease_id: int) -> int:
    """Return the size of the attempt's parts. Raises `LeaseEnded`."""
    for status, size in select(connection, STATE, lease=lease_id):
        if status == LeaseStatus.RUNNING:
            return int(size)
    raise LeaseEnded("The lease ended before the body did.")


def parts_of(task_id: UUID, attempt: int) -> QuerySet[ResultPart]:
    """Return the parts that an attempt wrote, in order."""
    rows = ResultPart.objects.using(database_alias()).filter(task_id=task_id, attempt=attempt)
    return rows.order_by("place")
