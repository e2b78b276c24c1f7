"""Have all waiting tasks of a limit examined again after its numbers have changed."""

from __future__ import annotations

import json

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import execute
from taskqueue.engine.statement import Statement
from taskqueue.models import Limit, Limiter, LimitNote
from taskqueue.models.limit import Per

# Partitions that wait for a token of one limit. The token may now come sooner, and the only record
# of their wait is the time of the token.
#
# Locks: partitions, skipping locked ones, because a session that holds them may wait for these
# limiters.
ASK_AGAIN = Statement(
    postgresql="""
        UPDATE taskqueue_partition AS partition
        SET opens_at = partition.changed_at
        FROM (
            SELECT id
            FROM taskqueue_partition
            WHERE opens_at IS NOT NULL
                AND (limits @> %(named)s::jsonb OR queue_name = %(queue_name)s)
            FOR UPDATE SKIP LOCKED
        ) AS waiting
        WHERE partition.id = waiting.id
    """,
    sqlite="""
        UPDATE taskqueue_partition
        SET opens_at = changed_at
        WHERE opens_at IS NOT NULL AND (
            queue_name = %(queue_name)s OR EXISTS (
                SELECT 1
                FROM json_each(taskqueue_partition.limits, '$.limits')
                WHERE json_extract(value, '$.name') = %(name)s
            )
        )
    """,
)


def look_again(connection: BaseDatabaseWrapper, limit: Limit) -> None:
    """Note the limiters of a limit, and make partitions that wait for its tokens ask again.

    The caller's transaction changes the limit. This locks its limiters by id, as claims do: a claim
    that locked them earlier has already written which partitions wait, and a later claim reads the
    new numbers.
    """
    rows = Limiter.objects.using(connection.alias).filter(limit_id=limit.id)
    ids = list(rows.order_by("id").select_for_update().values_list("id", flat=True))
    LimitNote.objects.using(connection.alias).bulk_create(
        [LimitNote(subject=id) for id in ids], batch_size=1000
    )
    if limit.rate is None:
        return
    execute(
        connection,
        ASK_AGAIN,
        name=limit.name,
        named=json.dumps({"limits": [{"name": limit.name}]}),
        queue_name=limit.name.removeprefix("queue:") if limit.per == Per.QUEUE else None,
    )
