"""Bodies that misbehave; each must end as its row in `faults/bodies.py` says."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from taskqueue import task
from tests.sample.worker_tasks import append

CRASHING: dict[str, Any] = {"max_crashes": 2, "crash_delay": 0}


class Unprintable(Exception):
    """Cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@task(**CRASHING)
def segfault(path: str) -> None:
    """Dies of a signal."""
    append(path, "start")
    ctypes.string_at(0)


@task(**CRASHING)
def abort(path: str) -> None:
    """Dies of its own abort."""
    append(path, "start")
    os.abort()


@task(**CRASHING)
def exit_hard(path: str, code: int) -> None:
    """Ends its process without a word."""
    append(path, "start")
    os._exit(code)


@task(**CRASHING)
def killed_for_memory(path: str) -> None:
    """Ends as the kernel's out-of-memory killer would end it."""
    append(path, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@task(**CRASHING)
def take_memory(path: str, megabytes: int) -> int:
    """Takes so much memory, and uses it."""
    append(path, "start")
    return len([b"x" * (1 << 20) for _ in range(megabytes)])


@task
def run_out_of_memory(path: str) -> None:
    """Asks for more memory than a process may have."""
    import resource

    append(path, "start")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, hard))
    try:
        len(b"x" * (8 << 30))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@task
def raise_exit(path: str, class_name: str) -> None:
    """Raises what usually ends a program."""
    append(path, "start")
    exits = (SystemExit, KeyboardInterrupt, GeneratorExit)
    raise {each.__name__: each for each in exits}[class_name]("ended")


@task(timeout=0.5)
def loop(path: str) -> None:
    """Never ends by itself."""
    append(path, "start")
    while True:
        pass


@task(timeout=0.5)
def loop_stubbornly(path: str) -> None:
    """Swallows what should interrupt it."""
    append(path, "start")
    while True:
        try:
            while True:
                time.sleep(0.01)
        except:  # noqa: E722
            pass


@task(max_crashes=100, crash_delay=0)
def never_end(path: str) -> None:
    """As the above, until somebody has it stopped."""
    append(path, "start")
    while True:
        try:
            while True:
                pass
        except:  # noqa: E722
            pass


@task(timeout=0.5)
def hold_interpreter(path: str, seconds: int) -> None:
    """Keeps the interpreter's lock, in one call of a C function."""
    append(path, "start")
    ctypes.PyDLL(None).sleep(seconds)


@task
def leak_threads(path: str) -> int:
    """Leaves threads that never end."""
    append(path, "start")
    for _ in range(5):
        threading.Thread(target=threading.Event().wait).start()
    return threading.active_count()


@task
def leave_grandchild(path: str) -> int:
    """Leaves a process behind, which keeps the output open."""
    append(path, "start")
    code = "import time; time.sleep(20)"
    return subprocess.Popen([sys.executable, "-S", "-c", code]).pid


@task
def say_much(path: str, lines: int) -> None:
    """Writes more than anybody will read, in both ways."""
    import logging

    append(path, "start")
    for number in range(lines):
        logging.getLogger(__name__).warning("line %s %s", number, "x" * 200)
    sys.stdout.write("y" * 100_000 + "\n")


@task
def return_much(path: str) -> str:
    """Returns more than the limit."""
    append(path, "start")
    return "x" * 3_000_000


@task
def raise_much(path: str) -> None:
    """Raises with a huge message, and what no database stores."""
    append(path, "start")
    raise ValueError("\x00" + "é\ud800" * 500_000)


@task
def raise_from_deep(path: str, depth: int) -> None:
    """Raises from deep down."""
    append(path, "start")
    _descend(depth)


def _descend(depth: int) -> None:
    if depth == 0:
        raise ValueError("deep")
    _descend(depth - 1)


@task
def return_set(path: str) -> set[int]:
    """Returns what JSON does not have."""
    append(path, "start")
    return {1, 2}


@task
def raise_unprintable(path: str) -> None:
    """Raises what cannot be printed."""
    append(path, "start")
    raise Unprintable
