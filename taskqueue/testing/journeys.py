"""Move the clock: in a test, the database's clock shows another time.

Every statement of the test's connection reads the moved clock. Stored rows and schedules are not
changed, and become due.
"""

from __future__ import annotations

import re
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
# Only as an argument of SQLite's functions: elsewhere the word belongs to the project.
_SQLITE = re.compile(
    r"""
    (\b (?:date|time|datetime|julianday|unixepoch|strftime|timediff) \s*\(\s*
    (?: (?: '(?:[^']|'')*+' | [^(),'] )++ ,\s* )? )  # The format, or the other time.
    'now'
    """,
    re.IGNORECASE | re.VERBOSE,
)

# In both directions: times beyond the year 9999 do not fit a datetime.
FURTHEST = timedelta(days=365_000)


_away: list[BaseDatabaseWrapper] = []  # The connection of each journey that has not ended.


def seconds_ahead() -> float:
    """Return how far the clock is ahead: the sum of all journeys."""
    return values.ahead.total_seconds()


class travelling(Lasting):  # noqa: N801  (read as a verb: `with travelling(...):`)
    """Move the database's clock for this test's connection.

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
        self._departures: list[tuple[timedelta, BaseDatabaseWrapper]] = []

    def _begin(self) -> None:
        connection = project_connection()
        if isinstance(self._to, datetime):
            further = self._to - dialect_for(connection).now(connection)
        else:
            further = _length_of(self._to)
        if abs(values.ahead + further) > FURTHEST:
            raise _too_far(self._to)
        if connection not in _away:
            # Leaving a block of `execute_wrapper` removes the last wrapper, even that of another
            # block.
            connection.execute_wrappers.insert(0, _execute)
        _away.append(connection)
        self._departures.append((further, connection))
        values.ahead += further

    def _end(self) -> None:
        # The connection on which it started: a thread that ends it may have another one.
        further, connection = self._departures.pop()
        values.ahead -= further
        _away.remove(connection)
        if connection not in _away:
            connection.execute_wrappers.remove(_execute)


def _execute(execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute the statement, changed to read the moved clock."""
    if isinstance(sql, str):
        if context["connection"].vendor == "sqlite":
            # Python's clock, so that other tools that move it are respected.
            sql = _SQLITE.sub(rf"\g<1>'{values.stored(values.clock())}'", sql)
        else:
            sql = _POSTGRESQL.sub(rf"(\g<0> + interval '{seconds_ahead():f} seconds')", sql)
    return execute(sql, params, many, context)


def _length_of(duration: Duration) -> timedelta:
    try:
        return timedelta(seconds=seconds_of(duration))
    except OverflowError:
        raise _too_far(duration) from None


def _too_far(to: Duration | datetime) -> ValueError:
    return ValueError(f"Travel by at most a thousand years, not to {to!r}.")
