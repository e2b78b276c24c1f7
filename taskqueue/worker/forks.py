"""A body may fork: the copy of the child that this makes must not act in the child's name."""

from __future__ import annotations

import os
import socket
import sys
import traceback
from typing import Any

from django.db import connections

_CHILD = os.getpid()
"""The process that was started clean; a copy of it remembers the same number."""
NOTE = b"taskqueue: what a task's body has forked ended with the body; end it with os._exit.\n"
_left: list[Any] = []
"""Sessions of the child, in a copy: never used there, nor closed, which would end the child's."""


def keep_from_copies(sock: socket.socket) -> None:
    """Take from every copy the way to the parent, and the child's sessions with databases.

    What it asks of a database, it asks in a session of its own.
    """
    os.register_at_fork(after_in_child=sock.close)
    os.register_at_fork(after_in_child=_leave_sessions)


def _leave_sessions() -> None:
    for connection in connections.all(initialized_only=True):
        _left.append(connection.connection)
        connection.connection = None


def end_copy() -> None:
    """End this process, if it is a copy. Call it as soon as a body has ended, however it has.

    What comes next writes to the parent and to the database in the child's name.
    """
    if os.getpid() == _CHILD:
        return
    error = sys.exc_info()[1]
    # Straight to the file: a lock that another thread held at the fork is never released here.
    os.write(2, NOTE if error is None else NOTE + traceback.format_exc().encode())
    os._exit(_exit_code(error))


def _exit_code(error: BaseException | None) -> int:
    if error is None:
        return 0
    code = error.code if isinstance(error, SystemExit) else 1
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1
