"""Recognise transient errors of the database, after which a second try may succeed."""

from __future__ import annotations

from typing import Any

from django.db import InterfaceError, OperationalError

CONNECTION, RESOURCES, INTERVENTION, ROLLBACK = "08", "53", "57P", "40"
# Classes of PostgreSQL's error codes, from appendix A of its manual.
LOCK_NOT_AVAILABLE, READ_ONLY, TRANSACTION = "55P03", "25006", "25"
# Numbers from https://www.sqlite.org/rescode.html.
SQLITE_BUSY, SQLITE_LOCKED = 5, 6


class OutOfSight(OperationalError):
    """A row exists that the transaction's snapshot does not show; a new transaction will see it."""


def is_passing(error: Exception) -> bool:
    """Return whether it was a deadlock, a serialization failure, a lock or a lost connection."""
    if isinstance(error, OutOfSight) or is_busy(error):
        return True
    states = CONNECTION, RESOURCES, INTERVENTION, ROLLBACK, LOCK_NOT_AVAILABLE
    return _is_of_postgresql(error, states)


def is_busy(error: BaseException) -> bool:
    """Return whether another connection holds SQLite's write lock."""
    # The lowest byte is the kind of the error, the others give details.
    code = getattr(error.__cause__, "sqlite_errorcode", 0)
    return code & 0xFF in (SQLITE_BUSY, SQLITE_LOCKED)


def is_lock_refused(error: Exception) -> bool:
    """Return whether PostgreSQL refused to wait for a lock that another session wants."""
    return getattr(error.__cause__, "sqlstate", None) == LOCK_NOT_AVAILABLE


def is_outage(error: Exception) -> bool:
    """Return whether PostgreSQL was unavailable, or read-only, for everybody."""
    return _is_of_postgresql(error, (CONNECTION, INTERVENTION, READ_ONLY))


def is_of_session(error: Exception) -> bool:
    """Return whether the session or its server is in trouble, regardless of what was written.

    A session that was silent within a transaction for too long has been ended, and a read-only
    server refuses everything. Django reports both as internal errors, as it does errors that a
    trigger of the project raises.
    """
    if isinstance(error, (OperationalError, InterfaceError)):
        return True
    return _is_of_postgresql(error, (TRANSACTION,))


def _is_of_postgresql(error: Exception, states: tuple[str, ...]) -> bool:
    """Return whether psycopg raised it, with such a code or because the connection broke."""
    cause: Any = error.__cause__
    if not hasattr(cause, "sqlstate"):
        return False
    if cause.sqlstate is None:  # psycopg's own errors have no code either.
        return type(cause).__name__ in ("OperationalError", "ConnectionTimeout")
    return str(cause.sqlstate).startswith(states)
