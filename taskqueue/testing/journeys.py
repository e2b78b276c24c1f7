"""Moving the clock: a test lets the database's clock read another time.

Every statement of the test's connection reads the moved clock. Stored rows and schedules stay as
they are, and become due.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.retries import seconds_of
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sqlite import values
from taskqueue.exceptions import Duration
from taskqueue.testing.lasting import Lasting

_POSTGRESQL = re.compile(r"\b(clock_timestamp|statement_timestamp)\(\)", re.IGNORECASE)
_SQLITE = re.compile(
    r"""
    (\b (?:date|time|datetime|julianday|unixepoch|strftime|timediff) \s*\(\s*
    (?: (?: '(?:[^']|'')*+' | [^(),'] )++ ,\s* )? )  # The format, or the other time.
    'now'
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""As an argument of SQLite's functions: elsewhere it is a word of the project's own."""

FURTHEST = timedelta(days=365_000)
"""Ahead or back: beyond the year 9999 no datetime tells what comes due."""


class Clock:
    """How far the test's connection is ahead of its database: the sum of all journeys."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)
        self.begun: list[tuple[travelling, timedelta, BaseDatabaseWrapper]] = []

    def depart(
        self, journey: travelling, further: timedelta, connection: BaseDatabaseWrapper
    ) -> None:
        """Move the clock further ahead."""
        if not self._is_away(connection):
            # The end of a block of `execute_wrapper` takes away the last, whosever that is.
            connection.execute_wrappers.insert(0, self._execute)
        self.begun.append((journey, further, connection))
        self._add_up()

    def arrive(self, journey: travelling) -> None:
        """End the latest departure of a journey, if there is one."""
        for place in reversed(range(len(self.begun))):
            if self.begun[place][0] is journey:
                # The connection it left from: another thread that ends it has one of its own.
                connection = self.begun.pop(place)[2]
                if not self._is_away(connection):
                    connection.execute_wrappers.remove(self._execute)
                self._add_up()
                return

    def _is_away(self, connection: BaseDatabaseWrapper) -> bool:
        return any(other is connection for _, _, other in self.begun)

    def _add_up(self) -> None:
        self.ahead = values.ahead = sum((further for _, further, _ in self.begun), timedelta(0))

    def _execute(
        self, execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if isinstance(sql, str):
            sql = self._moved(sql, context["connection"].vendor)
        return execute(sql, params, many, context)

    def _moved(self, sql: str, vendor: str) -> str:
        """Return the statement, changed to read the moved clock."""
        if vendor == "sqlite":
            # That of Python, so that what else moves it is heeded.
            return _SQLITE.sub(rf"\g<1>'{values.stored(values.clock())}'", sql)
        seconds = self.ahead.total_seconds()
        return _POSTGRESQL.sub(rf"(\g<0> + interval '{seconds:f} seconds')", sql)


_clock = Clock()


def seconds_ahead() -> float:
    """Return how far the clock is ahead."""
    return _clock.ahead.total_seconds()


def begun() -> int:
    """Return how many journeys have begun and not ended."""
    return len(_clock.begun)


def end_all_but(number: int) -> None:
    """End the journeys that were begun after this many."""
    while begun() > number:
        _clock.begun[-1][0].stop()


class travelling(Lasting):  # noqa: N801  (read as a verb: `with travelling(...):`)
    """Move the database's clock, as this test's connection reads it.

    `to` is a duration, in seconds or as a timedelta, or the aware datetime that the clock should
    read. Tasks that become due wait for `run_due`. Nested journeys add up. For `with` and `async
    with`; at the end, the clock is as before. Workers in other processes, other connections and
    Python's own clock are not affected.
    """

    def __init__(self, to: Duration | datetime) -> None:
        if isinstance(to, datetime) and to.tzinfo is None:
            raise ValueError(f"Travel to an aware datetime, not to {to!r}, which has no time zone.")
        if not isinstance(to, datetime) and abs(_length_of(to)) > FURTHEST:
            raise _too_far(to)
        self._to = to

    def start(self) -> None:
        """Move the clock, where `with` does not fit; `stop` moves it back."""
        connection = project_connection()
        if isinstance(self._to, datetime):
            further = self._to - dialect_for(connection).now(connection)
        else:
            further = _length_of(self._to)
        if abs(_clock.ahead + further) > FURTHEST:
            raise _too_far(self._to)
        _clock.depart(self, further, connection)

    def stop(self) -> None:
        """Move the clock back as far as `start` moved it."""
        _clock.arrive(self)


def _length_of(duration: Duration) -> timedelta:
    try:
        return timedelta(seconds=seconds_of(duration))
    except OverflowError:
        raise _too_far(duration) from None


def _too_far(to: Duration | datetime) -> ValueError:
    return ValueError(f"Travel by at most a thousand years, not to {to!r}.")


@contextmanager
def journeys() -> Iterator[Callable[[Duration | datetime], None]]:
    """Return `travel(to)`, which moves the clock until the end of this block."""
    before = begun()
    try:
        yield lambda to: travelling(to).start()
    finally:
        end_all_but(before)
