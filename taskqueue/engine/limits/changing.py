"""Having all that waits under a limit looked at again, because its numbers have changed."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from taskqueue.models import Limit, Limiter, LimitNote, Partition


def look_again(connection: BaseDatabaseWrapper, limit: Limit) -> None:
    """Note the limiters of a limit, and have those who wait for its tokens ask again.

    The caller's transaction changes the limit. Locks its limiters by their ids, as claims do: one
    that holds them before has written what waits, and one that comes later reads the new numbers.
    Partitions are not waited for, since who holds them may wait for these limiters.
    """
    rows = Limiter.objects.using(connection.alias).filter(limit_id=limit.id)
    ids = list(rows.order_by("id").select_for_update().values_list("id", flat=True))
    LimitNote.objects.using(connection.alias).bulk_create(
        [LimitNote(subject=id) for id in ids], batch_size=1000
    )
    if limit.rate is None:
        return
    # A token may come sooner now, and whoever waits for one says so only by the time.
    partitions = Partition.objects.using(connection.alias)
    waiting = partitions.filter(opens_at__isnull=False).select_for_update(skip_locked=True)
    partitions.filter(id__in=list(waiting.values_list("id", flat=True))).update(
        opens_at=F("changed_at")
    )
