"""Database connections: Django's own for callers, separate ones for a worker's threads."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic
from django.db.utils import load_backend

from taskqueue.conf import get_settings
from taskqueue.engine.sessions import (
    is_postgresql,
    is_sqlite,
    limit_lock_waits,
    plan_transaction,
    set_up_file,
)

# Seconds to wait for a connection.
CONNECT_TIMEOUT = 5
# Seconds that a worker's statement waits for SQLite's write lock before it tries again.
BUSY_TIMEOUT = 2.0
# The number that psycopg uses for it.
READ_COMMITTED = 2


def database_alias() -> str:
    """Return the alias of the database that holds the queue."""
    return get_settings().DATABASE


def project_connection() -> BaseDatabaseWrapper:
    """Return this thread's ordinary connection to the queue's database, in its transaction."""
    return connections[database_alias()]


def open_worker_connection(
    *, silence: float, busy_timeout: float = BUSY_TIMEOUT
) -> BaseDatabaseWrapper:
    """Return a new, separate connection to the queue's database.

    `silence` is how many seconds without an answer from the network end it; `busy_timeout` is how
    many seconds a statement waits for SQLite's write lock. Raises the database's error if it cannot
    be reached.
    """
    settings = copy.deepcopy(connections[database_alias()].settings_dict)
    options = settings.setdefault("OPTIONS", {})
    settings["CONN_MAX_AGE"] = None
    settings["AUTOCOMMIT"] = True
    if settings["ENGINE"].endswith(("postgresql", "postgis", "postgresql_psycopg2")):
        _prepare_postgresql(settings, options, silence)
    else:
        # A ping that waits for the lock must end before the children give up on their parent.
        options["timeout"] = min(busy_timeout, silence / 2)
        # The ORM's transactions too: one that reads first could fail half way if the lock is taken.
        options["transaction_mode"] = "IMMEDIATE"
    backend: Any = load_backend(settings["ENGINE"])
    connection: BaseDatabaseWrapper = backend.DatabaseWrapper(settings, database_alias())
    # The heartbeat never shares its connection, but the thread that joins it closes the connection.
    connection.inc_thread_sharing()
    connection.ensure_connection()
    set_up_file(connection)
    return connection


def _prepare_postgresql(settings: dict[str, Any], options: dict[str, Any], silence: float) -> None:
    options.pop("pool", None)
    # With binding by the server, parameters are sent separately, not put into the text.
    options["server_side_binding"] = True
    # A prepared statement would stay on a session that a pooler may give to another client.
    options["prepare_threshold"] = None
    # Replaces any settings of the project or the database for the session's transactions.
    options["isolation_level"] = READ_COMMITTED
    options.setdefault("connect_timeout", CONNECT_TIMEOUT)
    options.setdefault("keepalives_idle", max(1, int(silence / 3)))
    options.setdefault("keepalives_interval", 1)
    options.setdefault("keepalives_count", 3)
    options.setdefault("tcp_user_timeout", int(silence * 1000))


@contextmanager
def brief_connection(alias: str) -> Iterator[BaseDatabaseWrapper]:
    """Open a separate connection to one of the project's databases, and use it during the block.

    The wait for a server that does not answer ends after some seconds.
    """
    connection = connections[alias].copy()
    if is_postgresql(connection):
        options = connection.settings_dict.setdefault("OPTIONS", {})
        options.pop("pool", None)
        options.setdefault("connect_timeout", CONNECT_TIMEOUT)
        options.setdefault("tcp_user_timeout", CONNECT_TIMEOUT * 1000)
    try:
        with installed(connection):
            yield connection
    finally:
        connection.close()


@contextmanager
def installed(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Make the ORM use this connection instead of the thread's own."""
    alias = connection.alias
    before = connections[alias]
    if connection == before:  # Equal also if it is Django's proxy.
        yield
        return
    connections[alias] = connection
    try:
        yield
    finally:
        connections[alias] = before


@contextmanager
def transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Open a transaction on a worker's connection; within a caller's `atomic`, use that one.

    On SQLite it takes the write lock at once, so that it cannot fail half way because the lock is
    taken.
    """
    if connection.in_atomic_block:
        yield
        return
    # A claim counts, in a later statement, what earlier holders of the locks have committed.
    begin = "BEGIN IMMEDIATE" if is_sqlite(connection) else "BEGIN ISOLATION LEVEL READ COMMITTED"
    with connection.cursor() as cursor:
        cursor.execute(begin)
        try:
            plan_transaction(connection)
            yield
        except BaseException:
            with suppress(Exception):  # If the connection is lost, so is the transaction.
                cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")


def is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a PostgreSQL connection has an open transaction, whoever began it."""
    session: Any = connection.connection
    return session is not None and session.info.transaction_status.name != "IDLE"


@contextmanager
def orm_transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Open an ORM transaction on a worker's connection; within a caller's, use that one.

    Unlike in `transaction`, code called there may use `atomic`.
    """
    with installed(connection):
        if connection.in_atomic_block:
            yield
            return
        with atomic(using=connection.alias):
            plan_transaction(connection)
            yield


@contextmanager
def short_waits(connection: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """Limit the wait for each lock; on PostgreSQL, within one ORM transaction.

    On SQLite a worker's connection has its own limit.
    """
    if not is_postgresql(connection):
        yield
        return
    with orm_transaction(connection):
        limit_lock_waits(connection, seconds)
        yield
