"""Reset Django's database connections in a child between tasks, and guard them from forks.

A body may fork the child; the copy must not use the child's connections.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import SyncToAsync
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

from taskqueue.engine.sessions import is_postgresql

logger = logging.getLogger("taskqueue.worker")
P = ParamSpec("P")
T = TypeVar("T")

IDLE_LIMIT = 10.0  # Idle seconds after which a connection is checked before use.


# Whether this thread has opened a connection; unset until that was checked.
_opened = threading.local()


@receiver(connection_created)
def _note_opened(**named: Any) -> None:
    _opened.any = True


def reset_connections() -> None:
    """Roll back transactions that a task left open in this thread; drop broken connections."""
    if not getattr(_opened, "any", True):
        return
    _opened.any = False
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _opened.any = True
            _reset(connection)
        elif connection.in_atomic_block:
            _forget_transaction(connection)


def _reset(connection: BaseDatabaseWrapper) -> None:
    if connection.in_atomic_block:
        _forget_transaction(connection)
        connection.close()
        return
    try:
        if not connection.get_autocommit():
            connection.rollback()
            connection.set_autocommit(True)
        elif _has_open_transaction(connection):
            connection.connection.rollback()
        if connection.errors_occurred:
            if connection.is_usable():
                connection.errors_occurred = False
            else:
                connection.close()
    except Exception:
        _drop(connection)
    if connection.queries_log:
        connection.queries_log.clear()


def _has_open_transaction(connection: BaseDatabaseWrapper) -> bool:
    session: Any = connection.connection
    if is_postgresql(connection):
        return bool(session.pgconn.transaction_status != 0)
    return bool(getattr(session, "in_transaction", False))


def _forget_transaction(connection: BaseDatabaseWrapper) -> None:
    connection.in_atomic_block = False
    connection.savepoint_ids = []
    connection.atomic_blocks = []
    connection.needs_rollback = False
    connection.run_on_commit = []
    connection.closed_in_transaction = False


def _drop(connection: BaseDatabaseWrapper) -> None:
    try:
        connection.close()
    except Exception:
        connection.connection = None


def close_quietly(connection: BaseDatabaseWrapper | None) -> None:
    """Close a connection of the worker, whatever state it is in."""
    if connection is not None:
        try:
            connection.close()
        except Exception as error:
            logger.debug("Connection did not close error=%s", error)


class Freshness:
    """Whether the connections of a thread must be checked before their next use."""

    def __init__(self) -> None:
        self._used_at = time.monotonic()
        self.is_suspect = False

    def before_task(self) -> None:
        """Check the connections if there is a reason to."""
        if self.is_suspect or time.monotonic() - self._used_at > IDLE_LIMIT:
            self.is_suspect = False
            for connection in connections.all(initialized_only=True):
                is_open = connection.connection is not None and not connection.in_atomic_block
                if is_open and not connection.is_usable():
                    _drop(connection)

    def after_task(self) -> None:
        """Clean up after a task."""
        reset_connections()
        self._used_at = time.monotonic()


class SyncThread(ThreadPoolExecutor):
    """The one thread in which `async def` bodies use Django's ORM and other single-thread code.

    It runs one thing after the other, so nobody has to wait for its cleanup.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self._is_used = False

    def install(self) -> None:
        """Become the thread that asgiref's `sync_to_async` uses."""
        SyncToAsync.single_thread_executor = self

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function, and clean up at the end of the body."""
        future = super().submit(fn, *args, **kwargs)
        self._is_used = True
        return future

    def after_body(self) -> None:
        """Clean up, if anything was run since the last time."""
        if self._is_used:
            self._is_used = False
            super().submit(reset_connections)


SYNC_THREAD = SyncThread()

_is_copy = False  # Whether this process is a copy that a body made by a fork.
NOTE = b"taskqueue: what a task's body has forked ended with the body; end it with os._exit.\n"
# In a copy: the child's sessions. They are neither used nor closed there, because closing them
# would end the child's.
_left: list[Any] = []
# The most seconds that a fork waits. A thread that takes longer is waiting for a lock or the
# network, and then holds nothing that a copy needs.
LONGEST_HOLD = 2.0
_in_library = threading.RLock()
_fork = threading.local()


@contextmanager
def unforked() -> Iterator[None]:
    """Delay forks during the block, for database access in a thread of the child itself.

    SQLite's library allocates memory under a mutex. If a copy is made while another thread holds
    it, the mutex stays locked in the copy, which hangs when it opens a session.
    """
    with _in_library:
        yield


def keep_from_copies(sock: socket.socket) -> None:
    """Remove the socket to the parent, and the child's database sessions, from every copy.

    A copy opens its own database sessions.
    """
    os.register_at_fork(after_in_child=_become_copy)
    os.register_at_fork(after_in_child=sock.close)
    os.register_at_fork(after_in_child=_leave_sessions)
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)


def _become_copy() -> None:
    global _is_copy
    _is_copy = True


def _hold() -> None:
    _fork.is_held = _in_library.acquire(timeout=LONGEST_HOLD)


def _let_go() -> None:
    if _fork.is_held:
        _in_library.release()


def _leave_sessions() -> None:
    for connection in connections.all(initialized_only=True):
        _left.append(connection.connection)
        connection.connection = None


def end_copy() -> None:
    """End this process if it is a copy. Call this as soon as a body has ended in any way.

    The code after a body writes to the parent and to the database in the child's name.
    """
    if not _is_copy:
        return
    error = sys.exc_info()[1]
    # Written directly: a lock that another thread held at the fork is never released here.
    os.write(2, NOTE if error is None else NOTE + traceback.format_exc().encode())
    os._exit(_exit_code(error))


def _exit_code(error: BaseException | None) -> int:
    if error is None:
        return 0
    code = error.code if isinstance(error, SystemExit) else 1
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1
