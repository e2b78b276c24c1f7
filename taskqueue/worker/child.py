"""The program of a child process, which runs the bodies that its parent orders.

It is a new process or a copy of the template, never a copy of the running parent, and shares only a
socket with the parent.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import socket
import sys
import threading
import traceback
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

from taskqueue import tracing
from taskqueue.worker import frames
from taskqueue.worker.frames import pack

EXIT_SECONDS = 3.0  # Seconds for functions registered with `atexit`.
PARENT_DIED, PROCESS_NAME = 1, 15  # PR_SET_PDEATHSIG, PR_SET_NAME


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def name_process(name: str) -> None:
    """Show this process under that name in `top` and `ps -o comm` (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PROCESS_NAME, name.encode())


def leave_to_parent(number: int, stack: object) -> None:
    """Do nothing: supervisors signal the whole group, but the parent decides about the bodies."""


def end_in_order() -> None:
    """Run functions registered with `atexit`, which may for example send reported errors."""
    end = threading.Timer(EXIT_SECONDS, os._exit, (0,))
    end.daemon = True
    end.start()
    if tracing.active is not None:
        tracing.active.flush()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()


def obey_parent_alone(parent: int) -> None:
    """Die with the parent, and leave signals of terminals and supervisors to it."""
    die_with_parent(parent)
    # A handler, not SIG_IGN, which programs started by bodies would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave_to_parent)


@cache
def load_project() -> None:
    """Import the code that bodies need, once. Raises the project's errors."""
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()
    from taskqueue.declarations.discovery import discover_tasks
    from taskqueue.worker.logs import show_logs

    show_logs()
    discover_tasks()
    import_module("taskqueue.worker.bodies.orders")


def be_child(sock: socket.socket, presence: int | None, setup: dict[str, Any]) -> NoReturn:
    """Carry out the frames of the parent until the end."""
    obey_parent_alone(setup["parent"])
    name_process("taskqueue-child")
    sock.set_inheritable(False)
    if presence is not None:
        # This process holds the worker's lock until it ends; programs that it starts do not.
        os.set_inheritable(presence, False)
    try:
        load_project()
        from taskqueue.worker.bodies.orders import OrderRunner

        runner = OrderRunner(sock, setup=setup)
    except BaseException:
        sock.sendall(pack((frames.BROKEN, traceback.format_exc()[-8000:])))
        sock.close()
        os._exit(3)
    runner.run()
    end_in_order()
    # Threads that a body left behind could delay an ordinary exit forever.
    os._exit(0)


def main() -> None:
    """Start clean, with the settings that the parent left in the environment."""
    setup = json.loads(os.environ.pop("TASKQUEUE_CHILD"))
    sys.path[:] = setup["path"]
    sys.argv[0] = setup["argv0"]
    be_child(socket.socket(fileno=setup["socket"]), setup["presence"], setup)


if __name__ == "__main__":
    # Under its real name, so that bodies that import this module get the same one.
    from taskqueue.worker.child import main as run_child

    run_child()
