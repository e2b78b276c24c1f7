"""A worker's settings of its database session: plans, time limits, the write lock.

The statements themselves are in `engine.postgresql` and `engine.sqlite`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.engine.statement import change, fetch

# Keys in the settings of a connection, which are its own copy.
OWNED = "TASKQUEUE_OWNS_SESSION"
WANTED = "TASKQUEUE_WANTED_EVENTS"
# Seconds for which a worker on a busy host may get no processor time.
SHORTEST_SILENCE = 1.0
# After this many uses the driver prepares a statement that is not run under `kept_plan`.
NEVER = 2**31 - 1

# A condition that is always true. After five plans for known parameters the server keeps one plan
# for all, if it estimates that to be cheaper; for a claim the estimates depend on how full the
# tables were each time. The server knows the length of this series, which is never generated, only
# if it knows the parameter. So every plan but the kept one looks expensive to it.
KEEPS_PLAN = """(
    clock_timestamp() IS NOT NULL
    OR (SELECT count(*) FROM generate_series(1, %(series)s::bigint)) > 0
)"""
SERIES = 10**9

# The worker's statements touch few rows by index. With statistics of a table that was empty a
# minute ago, the server would read the whole table. If it kept such a plan, it would go on reading
# a whole index for every row: 2,000 rows for each task, and growing. So in this mode each statement
# is planned anew, as unprepared ones always are, except those run under `kept_plan`.
PLANNING = {
    "plan_cache_mode": "auto",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
# A worker may be frozen, or its network gone, in the middle of a transaction. Its locks would keep
# others from taking over its tasks for as long as the server believes it to be alive: hours.
IDLENESS = "idle_in_transaction_session_timeout"
LIMIT_IDLENESS = f"SELECT set_config('{IDLENESS}', %s, true)"
LIMIT_LOCK_WAITS = "SELECT set_config('lock_timeout', %s, true)"
CANCEL_TIMEOUT = 1.0  # Seconds for a server to accept a request to cancel a statement.
# The kinds of events that anybody wants, as the conditions of triggers read them; `-` for none.
WANTED_EVENTS = "taskqueue.events"
NO_EVENTS = "-"
_WANTED = "COALESCE((SELECT NULLIF(kinds, '') FROM taskqueue_audience), '-')"
# The time, the kinds that the session knew to be wanted, and those that are wanted now. For the
# rest of this transaction the session knows these, so that triggers of bulk rows need not check for
# each row; or it knows none, if the caller must write the events of these rows.
BEGIN_BULK = f"""
SELECT
    clock_timestamp(), known, wanted,
    set_config('{WANTED_EVENTS}', CASE WHEN %s THEN '{NO_EVENTS}' ELSE wanted END, true)
FROM (
    SELECT known, COALESCE(NULLIF(known, ''), {_WANTED}) AS wanted
    FROM (SELECT current_setting('{WANTED_EVENTS}', true)) AS session (known)
    OFFSET 0
) AS session
"""  # noqa: S608  (of constants)
# For this transaction only.
COMMIT_LAZILY = "SELECT set_config('synchronous_commit', 'off', true)"
# For this transaction only, in one round trip.
PLAN_TRANSACTION = LIMIT_IDLENESS + "".join(
    f", set_config('{name}', {value}, true)"
    for name, value in (
        *((name, f"'{value}'") for name, value in PLANNING.items()),
        (WANTED_EVENTS, _WANTED),
    )
)
PLAN_SESSION = PLAN_TRANSACTION.replace("true)", "false)")
# Changes nothing, and takes the lock.
TAKE_WRITE_LOCK = "UPDATE taskqueue_queue SET name = name WHERE false"


def is_postgresql(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the database is PostgreSQL."""
    return connection.vendor == "postgresql"


def is_sqlite(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the database is SQLite."""
    return connection.vendor == "sqlite"


def longest_silence() -> float:
    """Return for how many seconds a worker may be silent while it holds locks.

    The locks are free again before its leases run out, so that others can take them over.
    """
    return max(SHORTEST_SILENCE, get_settings().LEASE_DURATION.total_seconds() / 3)


def set_up_file(connection: BaseDatabaseWrapper) -> None:
    """Let readers and the writer of an SQLite file work at the same time."""
    if is_sqlite(connection):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute("PRAGMA synchronous = NORMAL")


def own_session(connection: BaseDatabaseWrapper) -> None:
    """Set up a session that, as `has_own_session` has found, belongs to this connection alone.

    Settings and prepared statements stay on it until `leave_session`. The server ends the session
    if it is silent within a transaction for too long.
    """
    if is_postgresql(connection):
        planned = fetch(connection, PLAN_SESSION, (_silence(),))
        connection.settings_dict[WANTED] = planned[0][-1]
        # Behind a pooler, the next statement may reach a server session that has not prepared it.
        session: Any = connection.connection
        session.prepare_threshold = NEVER
    connection.settings_dict[OWNED] = True


def leave_session(connection: BaseDatabaseWrapper) -> None:
    """Undo everything that was set on the session, so that a pooler may give it to others."""
    if connection.settings_dict.pop(OWNED, False) and is_postgresql(connection):
        # Settings, LISTEN, prepared statements, and anything that may be added later.
        with connection.cursor() as cursor:
            cursor.execute("DISCARD ALL")


def cancel_statement(connection: BaseDatabaseWrapper) -> None:
    """Ask the server to cancel the current statement, from another thread.

    The statement may be waiting for a lock. On SQLite no statement waits for long.
    """
    session: Any = connection.connection
    if is_postgresql(connection) and session is not None:
        with suppress(Exception):  # The session may have ended meanwhile.
            session.cancel_safe(timeout=CANCEL_TIMEOUT)


def limit_lock_waits(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Limit the wait for each lock in this transaction."""
    if is_postgresql(connection):
        fetch(connection, LIMIT_LOCK_WAITS, (f"{seconds * 1000:.0f}ms",))


def owns_session(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the session is known to be this connection's alone, so settings persist."""
    return bool(connection.settings_dict.get(OWNED))


def set_wanted_events(connection: BaseDatabaseWrapper, kinds: str) -> None:
    """Let changes on the connection's own session cause events of these kinds, and of no others.

    Other sessions ask the database with each change or transaction.
    """
    wanted = kinds or NO_EVENTS
    if owns_session(connection) and connection.settings_dict.get(WANTED, wanted) != wanted:
        fetch(connection, f"SELECT set_config('{WANTED_EVENTS}', %s, false)", (wanted,))
        connection.settings_dict[WANTED] = wanted


@contextmanager
def kept_plan(connection: BaseDatabaseWrapper) -> Iterator[int]:
    """Let the server keep the plan of a statement with `KEEPS_PLAN`, if the session is our own.

    The statement must leave the planner no choice under `PLANNING`, so that a plan made for empty
    tables is still right when they are full. Yields the statement's parameter `series`.
    """
    if not owns_session(connection):
        yield 0
        return
    session: Any = connection.connection
    session.prepare_threshold = 0
    try:
        yield SERIES
    finally:
        session.prepare_threshold = NEVER


def plan_transaction(connection: BaseDatabaseWrapper) -> None:
    """Set what `own_session` sets, for this transaction only, on a session that may be shared."""
    if is_postgresql(connection) and not owns_session(connection):
        fetch(connection, PLAN_TRANSACTION, (_silence(),))


def limit_idleness(connection: BaseDatabaseWrapper) -> None:
    """Have the server end the session if it falls silent for too long in this transaction."""
    if is_postgresql(connection):
        fetch(connection, LIMIT_IDLENESS, (_silence(),))


def commit_lazily(connection: BaseDatabaseWrapper) -> None:
    """Let the COMMIT of this transaction not wait for the disk: a crash of the server may undo it.

    Use this only for work that is then done again.
    """
    if is_postgresql(connection):
        fetch(connection, COMMIT_LAZILY)


def take_write_lock(connection: BaseDatabaseWrapper) -> None:
    """On SQLite, lock before reading: a transaction that has read first may be unable to write."""
    if is_sqlite(connection):
        change(connection, TAKE_WRITE_LOCK)


def _silence() -> str:
    return f"{longest_silence() * 1000:.0f}ms"
