"""How much time the machine keeps from an almost idle process, and from workers.

    python -m tests.chaos.pace FILE

Ten times a second it works for a few milliseconds, and adds a line to the file: from when, until
when, and how many seconds of that it lost, because it woke late or had to share the processor. Time
limits of tests apply to the remaining time.

A process that sleeps most of the time is served before others. So the line also has for how long
the parents of workers waited for a processor, if the system counts that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tests.chaos.clients import whole_lines
from tests.chaos.history import Stall

REST, WORK = 0.1, 0.004
SILENT = 0.5
"""Seconds without a line, after which it is the measuring itself that waits."""
LOOK_EVERY = 1.0
"""Seconds between two looks for new workers."""
PROC = Path("/proc")


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
        found = [_stall(line) for line in whole_lines(self._path)]
        last, now = found[-1].until if found else self._began_at, time.time()
        if now - last > SILENT:
            found.append(Stall(last, now, now - last))
        return tuple(found)

    def close(self) -> None:
        """Measure no more."""
        self._process.kill()
        self._process.wait()


def _stall(line: str) -> Stall:
    since, until, seconds, *waited = line.split()
    pairs = (each.split("=") for each in waited)
    waits = tuple((int(pid), float(took)) for pid, took in pairs)
    return Stall(float(since), float(until), float(seconds), waits)


def kept(stalls: Iterable[Stall], since: float, until: float) -> float:
    """How many seconds of a span were kept from whoever had something to do in it."""
    return sum(stall.seconds * part for stall, part in _parts(stalls, since, until))


def kept_from_workers(stalls: Iterable[Stall], since: float, until: float) -> float:
    """How many seconds of a span the worker waited for a processor that waited least.

    Of those that were there all the time, and not frozen.
    """
    sums: dict[int, float] = defaultdict(float)
    seen: dict[int, int] = defaultdict(int)
    number = 0
    for stall, part in _parts(stalls, since, until):
        number += 1
        for pid, seconds in stall.waited:
            seen[pid] += 1
            sums[pid] += seconds * part
    return min((sums[pid] for pid, times in seen.items() if times == number), default=0.0)


def _parts(stalls: Iterable[Stall], since: float, until: float) -> Iterator[tuple[Stall, float]]:
    """The stalls that meet a span, and how much of each lies within it."""
    for stall in stalls:
        within = min(until, stall.until) - max(since, stall.since)
        if within > 0:
            yield stall, within / (stall.until - stall.since)


def measure(path: Path) -> None:
    """Write how it goes, for ever."""
    look_at = 0.0
    workers: list[int] = []
    before: dict[int, float] = {}
    with path.open("a", buffering=1) as file:
        while True:
            began_at, began = time.time(), time.monotonic()
            time.sleep(REST)
            cpu = time.process_time()
            while time.process_time() - cpu < WORK:
                pass
            if began >= look_at:
                look_at, workers = began + LOOK_EVERY, list(_workers(os.getppid()))
            waits = dict(_waits(workers))
            took = time.monotonic() - began
            # Each thread waits by itself, and they wait for each other. The sum falls as one ends.
            pairs = [
                f" {pid}={max(0.0, min(took, wait - before[pid])):.4f}"
                for pid, wait in waits.items()
                if pid in before
            ]
            before = waits
            seconds = max(0.0, took - REST - WORK)
            file.write(f"{began_at} {began_at + took} {seconds}{''.join(pairs)}\n")


def _workers(parent: int) -> Iterator[int]:
    """The parents of workers that a process has started."""
    for path in PROC.glob(f"{parent}/task/*/children"):
        with suppress(OSError):
            for pid in map(int, path.read_text().split()):
                with suppress(OSError):
                    if b"runworker" in (PROC / str(pid) / "cmdline").read_bytes():
                        yield pid


def _waits(pids: Iterable[int]) -> Iterator[tuple[int, float]]:
    """For how many seconds the threads of each have waited for a processor; not of frozen ones."""
    for pid in pids:
        with suppress(OSError):
            if (PROC / str(pid) / "stat").read_text().rpartition(") ")[2][0] in "TZ":
                continue
            files = (PROC / str(pid) / "task").glob("*/schedstat")
            yield pid, sum(int(file.read_text().split()[1]) for file in files) / 1e9


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
