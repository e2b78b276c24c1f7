"""How much of the time the machine keeps from a process that has little to do.

    python -m tests.chaos.pace FILE

Ten times a second it works for a few milliseconds, and adds a line to the file: from when, until
when, and how many seconds of that were kept from it, because it woke late or had to share the
processor. Bounds of time are asked of what is left.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.chaos.clients import whole_lines
from tests.chaos.history import Stall

REST, WORK = 0.1, 0.004
SILENT = 0.5
"""Seconds without a line, after which it is the measuring itself that waits."""


class Pace:
    """A process that measures from now on; `close` ends it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began_at = time.time()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.pace", str(path)],
            cwd=Path(__file__).resolve().parent.parent.parent,
            stdin=subprocess.DEVNULL,
        )

    def stalls(self) -> tuple[Stall, ...]:
        """What was kept from it until now."""
        found = [Stall(*map(float, line.split())) for line in whole_lines(self._path)]
        last, now = found[-1].until if found else self._began_at, time.time()
        if now - last > SILENT:
            found.append(Stall(last, now, now - last))
        return tuple(found)

    def close(self) -> None:
        """Measure no more."""
        self._process.kill()
        self._process.wait()


def kept(stalls: Iterable[Stall], since: float, until: float) -> float:
    """How many seconds of a span were kept from whoever had something to do in it."""
    return sum(
        stall.seconds * max(0.0, min(until, stall.until) - max(since, stall.since))
        / (stall.until - stall.since)
        for stall in stalls
        if stall.until > stall.since
    )  # fmt: skip


def measure(path: Path) -> None:
    """Write how it goes, for ever."""
    with path.open("a", buffering=1) as file:
        while True:
            began_at, began = time.time(), time.monotonic()
            time.sleep(REST)
            cpu = time.process_time()
            while time.process_time() - cpu < WORK:
                pass
            took = time.monotonic() - began
            file.write(f"{began_at} {began_at + took} {max(0.0, took - REST - WORK)}\n")


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
