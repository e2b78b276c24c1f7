"""Following the feed: events as they come, for async code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from asgiref.sync import sync_to_async

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.hub import HUB
from taskqueue.engine.events.reading import Page, read
from taskqueue.engine.events.subscribing import keep_reading

# Seconds after which a stream looks by itself, whatever it has heard.
LONGEST_PAUSE = 5.0


async def follow(
    wanted: EventFilter,
    *,
    after: int | None = None,
    is_over: Callable[[], Awaitable[bool]] | None = None,
    look_every: float = LONGEST_PAUSE,
) -> AsyncIterator[Page]:
    """Yield pages of events behind a number, or from now on; empty ones while nothing happens.

    `is_over` is asked when nothing has come for `look_every` seconds, and ends the stream. Raises
    `EventsGone` where events that were not read yet were deleted.
    """
    now = await sync_to_async(_begin, thread_sensitive=True)(wanted)
    with HUB.following(wanted, now if after is None else after) as follower:
        ended = False
        while True:
            events = HUB.take(follower)
            if events is None:
                page = await sync_to_async(_read, thread_sensitive=True)(wanted, follower.position)
                follower.position = page.next_seq
                yield page
                if page.has_more:
                    continue
            else:
                yield Page(events=events, next_seq=follower.position, has_more=False)
                if not events and ended:
                    return
            if not events and is_over is not None:
                ended = await is_over()
            await follower.wait(look_every)


def _begin(wanted: EventFilter) -> int:
    connection = project_connection()
    try:
        return keep_reading(connection, wanted)
    finally:
        _let_go()


def _read(wanted: EventFilter, after: int) -> Page:
    try:
        return read(project_connection(), wanted, after=after)
    finally:
        _let_go()


def _let_go() -> None:
    """Give back the connection: a stream may be open for long, and needs it seldom."""
    connection = project_connection()
    if connection.autocommit and not connection.in_atomic_block and connection.vendor != "sqlite":
        connection.close()
