"""The guardian: a small process that kills children whose parent has gone silent.

It runs as a script, with only the standard library. The parent tells it how long each child may
live. After that moment another worker may hold the leases of the child, so the guardian kills the
child, even if its body holds the interpreter's lock or its parent is frozen. When the parent is
gone, it kills all of the children.
"""

from __future__ import annotations

import math
import os
import select
import signal
import struct
import sys
import time

# The process, and its deadline by the monotonic clock: infinity for a child that may live as long
# as its parent, 0 for one that is gone.
MESSAGE = struct.Struct("!qd")
LONGEST_WAIT = 0.5  # Seconds. A frozen process starts its wait again when it wakes.


def kill(process: int) -> None:
    """Kill a child and the processes that it started."""
    try:
        os.killpg(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def guard(source: int) -> None:
    """Enforce the deadlines that arrive, until the parent is gone."""
    deadlines: dict[int, float] = {}
    buffer = b""
    while True:
        next_at = min(deadlines.values(), default=math.inf)
        wait = None if next_at == math.inf else max(0.0, next_at - time.monotonic())
        readable, _, _ = select.select([source], [], [], wait and min(wait, LONGEST_WAIT))
        if not readable:
            # After a freeze, read the deadlines that came meanwhile before acting.
            readable, _, _ = select.select([source], [], [], 0)
        if readable:
            data = os.read(source, 65536)
            if not data:
                break
            buffer += data
            whole = len(buffer) - len(buffer) % MESSAGE.size
            for process, deadline in MESSAGE.iter_unpack(buffer[:whole]):
                if deadline:
                    deadlines[process] = deadline
                else:
                    deadlines.pop(process, None)
            buffer = buffer[whole:]
            continue
        now = time.monotonic()
        for process in [process for process, deadline in deadlines.items() if deadline <= now]:
            del deadlines[process]
            kill(process)
    for process in deadlines:
        kill(process)


def awake(number: int, frame: object) -> None:
    """Do nothing: the call interrupts the wait in which the process was frozen.

    Otherwise the kernel would start the wait again, and children that were frozen too would live
    on.
    """


if __name__ == "__main__":
    signal.signal(signal.SIGCONT, awake)
    # Supervisors signal the whole group; the end of the parent is what counts.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    guard(sys.stdin.fileno())
