"""A thread that reads new events once for all streams that a process serves.

The thread has its own connection. On PostgreSQL it listens on it, if no pooler shares the session;
otherwise it polls a few times a second. It reads each event once and keeps the latest ones, so that
a hundred streams cost the database no more than one. It ends when the last stream ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.declarations.event_filters import EventFilter, fits
from taskqueue.engine.connections import installed, open_worker_connection
from taskqueue.engine.events.numbering import CHANNEL
from taskqueue.engine.events.reading import FeedEvent, feed_event
from taskqueue.engine.events.subscribing import keep_reading, last_seq
from taskqueue.engine.notify import Listener, NoWitness, has_own_session
from taskqueue.engine.reader_outages import LONGEST_OUTAGE
from taskqueue.engine.sessions import is_sqlite
from taskqueue.exceptions import TooManyReaders
from taskqueue.models import Event

logger = logging.getLogger("taskqueue.engine")

# Seconds between two looks: with a listener, without one, and on SQLite.
POLL_LISTENING, POLL_BLIND, POLL_SQLITE = 2.0, 0.5, 0.2
# Events kept in memory; a stream that is further behind reads the database.
KEPT = 2000
# Seconds between two renewals of the streams' subscriptions.
RENEWAL = 15.0
# Seconds without any stream after which the thread ends.
IDLE = 20.0
RETRY = 1.0
SILENCE = 30.0


class Follower:
    """A stream: the events that it wants, and its position."""

    def __init__(self, wanted: EventFilter, position: int) -> None:
        self.wanted = wanted
        self.position = position
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait until there may be news, or until the seconds have passed."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return
        self._news.clear()

    def wake(self) -> None:
        """Tell the stream, from the thread, that there are events."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)


class Hub:
    """The streams of this process, and the thread that reads for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followers: set[Follower] = set()
        self._thread: threading.Thread | None = None
        self._process = 0
        # Whether the thread has found no streams and is ending.
        self._is_leaving = False
        # The rows after `_floor`, in order.
        self._recent: deque[Event] = deque()
        self._floor: int | None = None
        self._renew_at = 0.0
        # Since when the thread has been unable to read, and why.
        self._trouble: tuple[float, Exception] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether no thread is reading."""
        return self._thread is None or not self._thread.is_alive()

    @contextmanager
    def following(self, wanted: EventFilter, position: int) -> Iterator[Follower]:
        """Let a stream receive events during the block."""
        follower = Follower(wanted, position)
        with self._lock:
            if self._process != os.getpid():  # Forked, without the thread.
                self._process, self._thread, self._followers = os.getpid(), None, set()
            self._followers.add(follower)
            self._renew_at = 0.0
            if self._is_leaving or self.has_ended:
                self._is_leaving = False
                self._trouble = None
                self._forget()
                self._thread = threading.Thread(
                    target=self._run, name="taskqueue-events", daemon=True
                )
                self._thread.start()
        try:
            yield follower
        finally:
            with self._lock:
                self._followers.discard(follower)

    def take(self, follower: Follower) -> list[FeedEvent] | None:
        """Return the next events of a stream; None if it must read the database itself.

        Raises the database's error once the thread has been unable to read for too long.
        """
        with self._lock:
            if self._trouble is not None:
                began, error = self._trouble
                if time.monotonic() > began + LONGEST_OUTAGE:
                    raise error
            if self._floor is None or not self._floor <= follower.position <= self._last:
                return None
            rows = [row for row in self._recent if (row.seq or 0) > follower.position]
        if rows:
            follower.position = rows[-1].seq or 0
        return [feed_event(row) for row in rows if fits(row, follower.wanted)]

    @property
    def _last(self) -> int:
        """The number of the last event that the thread has read."""
        return (self._recent[-1].seq if self._recent else self._floor) or 0

    # In the thread

    def _run(self) -> None:
        idle_since = time.monotonic()
        connection: BaseDatabaseWrapper | None = None
        listener: Listener | None = None
        while True:
            with self._lock:
                if self._followers:
                    idle_since = time.monotonic()
                elif time.monotonic() - idle_since > IDLE:
                    self._is_leaving = True
                    break
            try:
                if connection is None:
                    connection = open_worker_connection(silence=SILENCE)
                    listener = _listener_on(connection)
                with installed(connection):
                    self._look(connection)
                self._note(None)
                _pause(connection, listener)
            except (DatabaseError, InterfaceError, OSError) as error:
                self._note(error)
                _close(connection)
                connection = listener = None
                time.sleep(RETRY)
        _close(connection)
        connections.close_all()

    def _note(self, error: Exception | None) -> None:
        """Record whether the thread can read; each change is logged once."""
        before = self._trouble
        if error is None:
            self._trouble = None
            if before is not None:
                away = time.monotonic() - before[0]
                logger.info("Events read again away=%.1fs", away)
        elif before is None:
            self._trouble = (time.monotonic(), error)
            logger.warning("Events not read, trying again error=%s", one_line(error))

    def _forget(self) -> None:
        self._recent.clear()
        self._floor = None

    def _look(self, connection: BaseDatabaseWrapper) -> None:
        with self._lock:
            wanted = {follower.wanted for follower in self._followers}
            floor, is_due = self._floor, time.monotonic() >= self._renew_at
            last = self._recent[-1].seq if self._recent else floor
            if is_due:
                self._renew_at = time.monotonic() + RENEWAL
        if is_due:
            for each in wanted:
                try:
                    keep_reading(connection, each)
                except TooManyReaders as error:  # Its subscription ended during the outage.
                    logger.warning("Stream not subscribed error=%s", one_line(error))
            if last is not None and last_seq(connection) < last:
                # The database was restored or emptied: streams read it themselves, and get the
                # error.
                with self._lock:
                    self._forget()
                last = None
        if last is None:
            with self._lock:
                self._floor = last_seq(connection)
                followers = list(self._followers)
        else:
            rows = Event.objects.using(connection.alias).filter(seq__gt=last).order_by("seq")
            found = list(rows[:KEPT])
            if not found:
                return
            with self._lock:
                if found[0].seq != last + 1:
                    # The events between were deleted: streams read the rest themselves.
                    self._recent.clear()
                    self._floor = (found[0].seq or 1) - 1
                self._recent.extend(found)
                while len(self._recent) > KEPT:
                    self._floor = self._recent.popleft().seq
                followers = list(self._followers)
        for follower in followers:
            follower.wake()


HUB = Hub()


def _listener_on(connection: BaseDatabaseWrapper) -> Listener | None:
    if is_sqlite(connection):
        return None
    try:
        if not has_own_session(connection, silence=SILENCE):
            return None
    except NoWitness:
        return None
    # The following look finds the events behind these notifications.
    listener = Listener(connection, lambda payload: None, channel=CHANNEL)
    listener.start()
    return listener


def _pause(connection: BaseDatabaseWrapper, listener: Listener | None) -> None:
    if listener is None:
        time.sleep(POLL_SQLITE if is_sqlite(connection) else POLL_BLIND)
        return
    with selectors.DefaultSelector() as selector:
        selector.register(listener.fileno(), selectors.EVENT_READ)
        selector.select(POLL_LISTENING)
    listener.hear()


def _close(connection: BaseDatabaseWrapper | None) -> None:
    if connection is not None:
        try:
            connection.close()
        except (DatabaseError, InterfaceError):
            pass
