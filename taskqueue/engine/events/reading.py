"""Read the feed: events after a number, in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Lookup, Q

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.exceptions import EventsGone
from taskqueue.models import Audience, Event, EventBatch

# The most events of one answer.
MOST = 1000
# The largest number that JSON keeps exactly.
LARGEST_SEQ = 2**53
UTC_OFFSET = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class FeedEvent:
    """A committed change, as readers and handlers receive it."""

    # Its number: without gaps, in the order in which events became visible.
    seq: int
    kind: str
    at: datetime
    task: UUID | None
    workflow: UUID | None
    # The name of the definition, workflow, schedule or alert rule; for an operation its verb.
    name: str
    queue: str
    worker: str
    attempt: int | None
    # Such as the status or the class of an error; never arguments, results or messages.
    details: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Page:
    """Events, and the number after which the next ones follow."""

    events: list[FeedEvent]
    next_seq: int
    # Whether there are more already.
    has_more: bool


def read(
    connection: BaseDatabaseWrapper, wanted: EventFilter, *, after: int, limit: int = MOST
) -> Page:
    """Return the first matching events after that number.

    Raises `EventsGone` if some of them were deleted because of their age, and also for a number
    that no event has yet, because such a reader would receive nothing for a long time.
    """
    audience = Audience.objects.using(connection.alias).first() or Audience()
    if after > audience.last_seq:
        raise EventsGone(
            f"No event has the number {after} yet: the last one is number {audience.last_seq}. The "
            f"database may have been restored or emptied. Read on behind {audience.last_seq}.",
            oldest=audience.last_seq + 1,
        )
    _require_kept(audience.pruned_seq, after)
    # Only up to the last number before the rows are read, so that `next_seq` skips no event.
    rows = Event.objects.using(connection.alias).filter(
        _query(wanted), seq__gt=after, seq__lte=audience.last_seq
    )
    found = list(rows.order_by("seq")[: limit + 1])
    if after < audience.last_seq and (not found or found[0].seq != after + 1):
        # Missing rows at the front may not match, or may have been deleted since the first look.
        looked = Audience.objects.using(connection.alias).values_list("pruned_seq", flat=True)
        _require_kept(looked.get(), after)
    events = [feed_event(row) for row in found[:limit]]
    has_more = len(found) > limit
    next_seq = events[-1].seq if has_more else max(after, audience.last_seq)
    return Page(events=events, next_seq=next_seq, has_more=has_more)


def _require_kept(pruned: int, after: int) -> None:
    """Raise `EventsGone` if events after that number were deleted."""
    if after < pruned:
        raise EventsGone(
            f"The events behind number {after} are no longer kept: the oldest one is number "
            f"{pruned + 1}. Read on behind {pruned}; what was deleted is lost to the feed.",
            oldest=pruned + 1,
        )


def waits_for_number(connection: BaseDatabaseWrapper, wanted: EventFilter) -> bool:
    """Return whether a matching event has no number yet; for batches, whatever their tasks."""
    rows = Event.objects.using(connection.alias).filter(_query(wanted), seq__isnull=True)
    batches = EventBatch.objects.using(connection.alias)
    of_any_task = replace(wanted, task_id=None)
    return rows.exists() or batches.filter(_query(of_any_task)).exists()


def read_last(
    connection: BaseDatabaseWrapper, wanted: EventFilter, *, limit: int
) -> list[FeedEvent]:
    """Return the last matching events, oldest first."""
    rows = Event.objects.using(connection.alias).filter(_query(wanted), seq__isnull=False)
    return [feed_event(row) for row in rows.order_by("-seq")[:limit]][::-1]


def feed_event(row: Event) -> FeedEvent:
    """Return a numbered event in the form in which readers receive it."""
    assert row.seq is not None
    return FeedEvent(
        seq=row.seq,
        kind=row.kind,
        at=row.at,
        task=row.task_id,
        workflow=row.workflow_id,
        name=row.name,
        queue=row.queue_name,
        worker=row.worker,
        attempt=row.attempt,
        details=row.details,
    )


def as_json(event: FeedEvent) -> dict[str, Any]:
    """Return an event as plain JSON values, as the API shows it."""
    at = event.at.isoformat().removesuffix("+00:00")
    ids = {
        name: None if value is None else str(value)
        for name, value in (("task", event.task), ("workflow", event.workflow))
    }
    return {**vars(event), **ids, "at": f"{at}Z" if event.at.utcoffset() == UTC_OFFSET else at}


def _query(wanted: EventFilter) -> Q:
    condition = Q(kind__in=wanted.kinds)
    if wanted.task_id is not None:
        condition &= Q(task_id=wanted.task_id)
    if wanted.workflow_id is not None:
        condition &= Q(workflow_id=wanted.workflow_id)
    return condition & _any_of("name", wanted.names) & _any_of("queue_name", wanted.queues)


def _any_of(column: str, patterns: Sequence[str]) -> Q:
    wanted = Q()
    for pattern in patterns:
        is_exact = not {"*", "?"} & set(pattern)
        wanted |= Q((column, pattern)) if is_exact else Q(FitsPattern(F(column), pattern))
    return wanted


class FitsPattern(Lookup):
    """Whether a column matches a pattern with `*` and `?`, as `fits` and the triggers decide it.

    On SQLite this uses GLOB: its regexes are Python's, and some patterns keep those busy for
    minutes.
    """

    prepare_rhs = False

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        """Return a condition by GLOB."""
        column, params = self.process_lhs(compiler, connection)
        return f"{column} GLOB %s", [*params, self.rhs.replace("[", "[[]")]

    def as_postgresql(
        self, compiler: Any, connection: BaseDatabaseWrapper
    ) -> tuple[str, list[Any]]:
        """Return a condition by a regex, which PostgreSQL matches without backtracking."""
        column, params = self.process_lhs(compiler, connection)
        signs = {"*": ".*", "?": "."}
        text = "".join(signs.get(sign, re.escape(sign)) for sign in self.rhs)
        return f"{column} ~ %s", [*params, f"^{text}$"]
