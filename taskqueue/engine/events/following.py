"""Following the feed: events as they are published, for async code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.hub import HUB
from taskqueue.engine.events.reading import Page, read, waits_for_number
from taskqueue.engine.events.subscribing import keep_reading
from taskqueue.engine.reader_outages import Outage

P = ParamSpec("P")
T = TypeVar("T")
# Seconds after which a stream looks for events even if it was told of none.
LONGEST_PAUSE = 5.0
# Seconds for which a finished stream waits for the numbers of its last events.
LONGEST_END = 30.0


async def follow(
    wanted: EventFilter,
    *,
    after: int | None = None,
    is_over: Callable[[], Awaitable[bool]] | None = None,
    look_every: float = LONGEST_PAUSE,
) -> AsyncIterator[Page]:
    """Yield pages of events after a number, or from now on; empty pages while nothing happens.

    `is_over` is asked when nothing has come for `look_every` seconds, and ends the stream after its
    last event. If the database connection is lost, the stream continues after its last event once
    the database answers again; this wait is logged and bounded. Raises `EventsGone` if unread
    events were deleted, and `TooManyReaders`.
    """
    begin = await _in_thread(_begin, wanted, after)
    outage = Outage()
    ends_at: float | None = None
    with HUB.following(wanted, begin) as follower:
        while True:
            events = HUB.take(follower)
            try:
                waits = True
                if events is None or (not events and ends_at is not None):
                    page, waits = await _in_thread(_read, wanted, follower.position)
                    follower.position = page.next_seq
                else:
                    page = Page(events=events, next_seq=follower.position, has_more=False)
                is_silent = not page.events and not page.has_more
                if is_silent and ends_at is None and is_over is not None and await is_over():
                    # The last events may still wait for their numbers.
                    ends_at = time.monotonic() + LONGEST_END
                    continue
                outage.is_over(follower.position)
            except (OperationalError, InterfaceError) as error:
                pause = await _in_thread(_pause_after, outage, error)
                # Readers use empty pages to keep their own connections alive.
                yield Page(events=[], next_seq=follower.position, has_more=False)
                await asyncio.sleep(pause)
                continue
            yield page
            if page.has_more:
                continue
            if is_silent and ends_at is not None and (not waits or time.monotonic() > ends_at):
                return
            await follower.wait(look_every)


async def _in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in the thread that has the project's connection."""
    return await sync_to_async(function, thread_sensitive=True)(*args, **kwargs)


def _begin(wanted: EventFilter, after: int | None) -> int:
    """Subscribe. Return the number after which the stream begins."""
    connection = project_connection()
    try:
        last = keep_reading(connection, wanted)
        if after is not None and after > last:
            read(connection, wanted, after=after, limit=1)  # Raises if it is still ahead.
        return last if after is None else after
    finally:
        let_go()


def _read(wanted: EventFilter, after: int) -> tuple[Page, bool]:
    """Return the next page, and whether some events still wait for their numbers."""
    try:
        connection = project_connection()
        # Asked first, so that events numbered by then are on the page.
        waits = waits_for_number(connection, wanted)
        return read(connection, wanted, after=after), waits
    finally:
        let_go()


def _pause_after(outage: Outage, error: Exception) -> float:
    return outage.wait_after(project_connection(), error)


def let_go() -> None:
    """Close the connection: a stream may be open for long and needs it rarely."""
    connection = project_connection()
    if connection.autocommit and not connection.in_atomic_block and connection.vendor != "sqlite":
        connection.close()
