"""The template: a process with the project's imports, of which children are copies (on Linux).

It is a copy of the worker's process, made before that had a thread, a connection or a handler, and
imports the tasks. A child is forked twice, so that it becomes the worker's own child process: the
worker sees its end, and it ends with the worker, like a child that is a new process. If a copy
could not be trusted, because an import has started threads or opened connections, and on other
systems, there is no template and each child is a new process. So is the first child after files of
the project have changed, or the template was killed; another template is started for the next.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import threading
import time
import weakref
from contextlib import suppress
from typing import Any, NoReturn, cast

from django.db import connections

from taskqueue.core.garbage import pause_collections, resume_collections
from taskqueue.worker import child

LARGEST_MESSAGE = 1 << 16
READY, STALE, REFUSED = b"ready", b"stale", b"refused "
# Files that a copy would share with its original, so that both would use them.
SHARED = ("socket:", "anon_inode:")


def obstacle_to_copies(own: socket.socket | None = None) -> str:
    """Return why a copy of this process could not be trusted; empty if it can.

    `own` is a socket that may be open. Connections that an import has left open, but not in a
    transaction, are closed.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
    if threading.active_count() > 1 or len(os.listdir("/proc/self/task")) > 1:
        return "an import has started a thread"
    if any(each.connection is not None for each in connections.all(initialized_only=True)):
        return "an import has left a database connection open"
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number > 2 and (own is None or number != own.fileno()):
            with suppress(OSError):  # The open folder itself was in the list a moment ago.
                if os.readlink(f"/proc/self/fd/{name}").startswith(SHARED):
                    return "an import has opened a socket"
    return ""


def be_template(sock: socket.socket, parent: int) -> NoReturn:
    """Load the tasks, and make children for the process at the other end of the socket."""
    code = 1
    try:
        child.name_process("taskqueue-base")
        child.obey_parent_alone(parent)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        del sys.argv[1:]
        # As in a child that is started clean, so that code that looks for the program finds it.
        sys.modules["__main__"] = child
        pause_collections()
        child.load_project()
        gc.collect()
        gc.freeze()
        resume_collections()
        sys.stdout.flush()
        sys.stderr.flush()
        _serve(sock)
        code = 0
    finally:
        # A child that is started clean reports what is wrong with the project.
        os._exit(code)


def _serve(sock: socket.socket) -> None:
    """Make children until no more are requested, or they would run outdated code."""
    times = _modification_times()
    if obstacle := obstacle_to_copies(sock):
        sock.send(REFUSED + obstacle.encode())
        return
    sock.send(READY)
    while True:
        setup, files, _, _ = socket.recv_fds(sock, LARGEST_MESSAGE, 2)
        if not setup:
            return
        if times != _modification_times(times):
            sock.send(STALE)
            return
        pid = _fork(sock, json.loads(setup), files)
        for number in files:
            os.close(number)
        sock.send(str(pid).encode())


def _modification_times(known: dict[str, int] | None = None) -> dict[str, int]:
    """Return when the files of all modules, or of the known ones, were changed."""
    if known is None:
        modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        known = dict.fromkeys(filter(None, modules), 0)
    times = {}
    for path in known:
        try:
            times[path] = os.stat(path).st_mtime_ns
        except OSError:
            times[path] = 0
    return times


def _fork(sock: socket.socket, setup: dict[str, Any], files: list[int]) -> int:
    """Copy this process twice; the first copy ends, and leaves the second to the worker."""
    read, write = os.pipe()
    if first := os.fork():
        os.close(write)
        os.waitpid(first, 0)  # From here on the second copy is the worker's.
        pid = int(os.read(read, 32))
        os.close(read)
        return pid
    first = os.getpid()
    try:
        if second := os.fork():
            os.write(write, str(second).encode())
            os._exit(0)
        for number in (read, write):
            os.close(number)
        sock.close()
        while os.getppid() == first:
            time.sleep(0.0002)
        _be_child(setup, files)
    finally:
        os._exit(1)


def _be_child(setup: dict[str, Any], files: list[int]) -> None:
    os.setsid()
    # Two children must not have the same sequences of random numbers, ...
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed()
    # ... and an exit must not clean up what an import has made, because others still use it.
    for finalizer in list(cast(Any, weakref.finalize)._registry):
        finalizer.atexit = False
    presence = files[1] if len(files) > 1 else None
    child.be_child(socket.socket(fileno=files[0]), presence, setup)


def main() -> None:
    """Start clean, with the settings that the parent left in the environment."""
    setup = json.loads(os.environ.pop("TASKQUEUE_TEMPLATE"))
    sys.path[:] = setup["path"]
    sys.argv[0] = setup["argv0"]
    be_template(socket.socket(fileno=setup["socket"]), setup["parent"])


if __name__ == "__main__":
    from taskqueue.worker.template import main as run_template

    run_template()
