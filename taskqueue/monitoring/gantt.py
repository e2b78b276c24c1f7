"""The attempts within a span of time, by worker and slot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from taskqueue.engine.connections import database_alias
from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.sqlite.values import loaded, stored
from taskqueue.engine.statement import Statement
from taskqueue.models import Lease
from taskqueue.monitoring.read_models.attempt import STATUSES
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.reading import is_postgresql, now, read

# The most attempts that are drawn, and that are read for them, newest first.
MOST_BARS, MOST_LOOKED = 1_000, 20_000
# Above this, `last` does not limit a statement: no lease has such an id.
NO_BOUND = 2**62
# The earliest end of a span, because spans that begin before the year 1 cannot be represented.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
# On PostgreSQL the id of a lease contains the second of its claim: see
# `engine/postgresql/claim.py`.
FIRST_SECOND, SHIFT = 1_735_689_600, 22

# The newest attempts by their key, and running ones by their index, however old. Neither part reads
# more than its limit of rows, whatever the filters exclude.
_COLUMNS = (
    "id, task_id, worker_id, attempt, status, claimed_at, started_at, finished_at, error_class"
)
_SPAN = """
SELECT
    lease.id, lease.task_id, lease.worker_id, lease.attempt, lease.status, lease.claimed_at,
    lease.started_at, lease.finished_at, lease.error_class, task.name, task.queue_name
FROM (
    SELECT *
    FROM (
        SELECT {columns}
        FROM taskqueue_lease
        WHERE id <= %(last)s
        ORDER BY id DESC
        LIMIT %(looked)s
    ) AS newest
    WHERE status <> 'running'
        AND COALESCE(started_at, claimed_at) < {until} AND finished_at > {since}
    UNION ALL
    SELECT *
    FROM (
        SELECT {columns}
        FROM taskqueue_lease
        WHERE status = 'running'
        ORDER BY worker_id
        LIMIT %(looked)s
    ) AS held
    WHERE started_at IS NOT NULL AND started_at < {until}
) AS lease
JOIN taskqueue_task AS task ON task.id = lease.task_id
WHERE (%(worker)s = '' OR lease.worker_id = %(worker)s)
    AND (%(name)s = '' OR task.name = %(name)s)
    AND (%(queue_name)s = '' OR task.queue_name = %(queue_name)s)
ORDER BY lease.id DESC
LIMIT %(bars)s
"""
SPAN = Statement(
    postgresql=_SPAN.format(columns=_COLUMNS, since="%(since)s", until="%(until)s"),
    # SQLite compares text, in which a time with whole seconds has no fraction.
    sqlite=_SPAN.format(columns=_COLUMNS, since="%(since_text)s", until="%(until_text)s"),
)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One attempt."""

    lease_id: int = about(in_json=False)
    task_id: UUID
    name: str
    queue_name: str
    worker_name: str
    attempt: int
    status: str = about(choices=STATUSES)
    error_class: str
    started_at: datetime = about("When it was claimed, if its body never began.")
    finished_at: datetime | None = about("null: it runs.")


@dataclass(frozen=True, kw_only=True)
class Gantt:
    """The attempts of a span, the newest first."""

    since: datetime
    until: datetime
    bars: list[Bar]
    is_cut: bool = about("Whether more attempts were claimed in the span, older ones.")

    def lanes(self) -> dict[str, list[list[Bar]]]:
        """Return the attempts by worker and lane: attempts in one lane do not overlap."""
        found: dict[str, list[list[Bar]]] = {}
        for bar in sorted(self.bars, key=lambda bar: (bar.worker_name, bar.started_at)):
            lanes = found.setdefault(bar.worker_name, [])
            lane = next((lane for lane in lanes if self._end(lane[-1]) <= bar.started_at), None)
            if lane is None:
                lanes.append([bar])
            else:
                lane.append(bar)
        return found

    def _end(self, bar: Bar) -> datetime:
        return bar.finished_at or self.until


def gantt(
    span: timedelta,
    *,
    until: datetime | None = None,
    worker: str = "",
    name: str = "",
    queue_name: str = "",
) -> Gantt:
    """Return the attempts that ran within the span before `until`, which is now by default.

    Of all attempts up to then, running ones and the newest 20,000 are read, and at most 1,000 are
    returned. Older ones that ended within the span are left out.
    """
    here = now()
    end = max(min(until or here, here), EARLIEST)
    since = end - span
    last = NO_BOUND if until is None or until >= here else _last_before(end)
    rows = read(
        SPAN, since=since, until=end, since_text=stored(since), until_text=stored(end),
        worker=worker, name=name, queue_name=queue_name,
        last=last, looked=MOST_LOOKED, bars=MOST_BARS + 1,
    )  # fmt: skip
    older = Lease.objects.using(database_alias()).filter(id__lte=last).order_by("-id")
    first_left = older.values_list("claimed_at", flat=True)[MOST_LOOKED : MOST_LOOKED + 1].first()
    return Gantt(
        since=since,
        until=end,
        bars=[_bar(*row) for row in rows[:MOST_BARS]],
        is_cut=len(rows) > MOST_BARS or (first_left is not None and first_left >= since),
    )


def _bar(
    lease_id: int, task_id: Any, worker_name: str, attempt: int, status: str, claimed_at: Any,
    started_at: Any, finished_at: Any, error_class: str, name: str, queue_name: str,
) -> Bar:  # fmt: skip
    begun = loaded(started_at) or loaded(claimed_at)
    assert begun is not None
    return Bar(
        lease_id=lease_id,
        task_id=as_uuid(task_id),
        name=name,
        queue_name=queue_name,
        worker_name=worker_name,
        attempt=attempt,
        status=status,
        error_class=error_class,
        started_at=begun,
        finished_at=loaded(finished_at),
    )


def _last_before(moment: datetime) -> int:
    """Return an id after which every lease was claimed after the moment."""
    if is_postgresql():
        return (int(moment.timestamp()) + 1 - FIRST_SECOND) << SHIFT
    # Ids are in the order of the claims, so this is a binary search.
    rows = Lease.objects.using(database_alias())
    newest = rows.order_by("-id").values_list("id", flat=True).first()
    low, high = 0, newest or 0
    while low < high:
        middle = (low + high + 1) // 2
        found = rows.filter(id__gte=middle).order_by("id").values_list("claimed_at", flat=True)
        claimed_at = found.first()
        if claimed_at is not None and claimed_at < moment:
            low = middle
        else:
            high = middle - 1
    return low
