"""The program of a child process, which runs the bodies that its parent orders.

It is started clean, never forked from the parent, and shares nothing with it but a socket.
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

from taskqueue.worker import frames
from taskqueue.worker.frames import pack

EXIT_SECONDS = 3.0  # Seconds that the functions registered with `atexit` may take.
PARENT_DIED = 1  # PR_SET_PDEATHSIG


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, where the kernel can (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def leave_to_parent(number: int, stack: object) -> None:
    """Do nothing: supervisors signal a whole group, and the parent decides about the bodies."""


def end_in_order() -> None:
    """Run the functions registered with `atexit`, such as the sending of reported errors."""
    end = threading.Timer(EXIT_SECONDS, os._exit, (0,))
    end.daemon = True
    end.start()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()


def main() -> None:
    """Start with the settings that the parent left in the environment, then obey its frames."""
    setup = json.loads(os.environ.pop("TASKQUEUE_CHILD"))
    die_with_parent(setup["parent"])
    # A handler, not SIG_IGN, which the programs that bodies start would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave_to_parent)
    sock = socket.socket(fileno=setup["socket"])
    sock.set_inheritable(False)
    if setup["presence"] is not None:
        # This process holds the worker's lock until it ends; the programs that it starts do not.
        os.set_inheritable(setup["presence"], False)
    sys.path[:] = setup["path"]
    sys.argv[0] = setup["argv0"]
    try:
        import django

        django.setup()
        from taskqueue.declarations.discovery import discover_tasks
        from taskqueue.worker.logs import show_logs

        show_logs()
        discover_tasks()
        from taskqueue.worker.orders import OrderRunner

        runner = OrderRunner(sock, setup=setup)
    except BaseException:
        sock.sendall(pack((frames.BROKEN, traceback.format_exc()[-8000:])))
        sock.close()
        os._exit(3)
    runner.run()
    end_in_order()
    # Threads that a body left behind would keep an ordinary exit waiting for ever.
    os._exit(0)


if __name__ == "__main__":
    # Under its real name, so that bodies that import this module find the same one.
    from taskqueue.worker.child import main as run_child

    run_child()
