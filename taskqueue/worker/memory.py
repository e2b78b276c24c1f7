"""The memory and processor time of processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

LOOK_INTERVAL = 0.25  # Seconds between two looks at the memory of a body that has a limit.


def resident_bytes(pid: int) -> int | None:
    """Return the memory of a process; None if the host does not tell, or it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None


def memory_of(pids: Iterable[int]) -> int | None:
    """Return the total memory of these processes; None if the host does not tell.

    Shared pages are counted for each process.
    """
    sizes = [size for size in map(resident_bytes, pids) if size is not None]
    return sum(sizes) if sizes else None


def resident_megabytes() -> float:
    """Return the memory of this process."""
    size = resident_bytes(os.getpid())
    if size is not None:
        return size / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def processor_seconds(pid: int) -> float | None:
    """Return a process's processor time so far; None if the host does not tell, or it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # After the name of the program, which may contain anything.
            fields = stat.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


class ProcessorShare:
    """The share of one processor that processes use between two looks, in percent."""

    def __init__(self) -> None:
        self._looked_at: float | None = None
        self._seconds: dict[int, float] = {}

    def look(self, pids: Iterable[int]) -> float | None:
        """Return the share since the last look; None at the first, or if the host does not tell.

        A process that has begun since counts completely; for one that has ended, nothing is known.
        """
        now = time.monotonic()
        seconds = {pid: used for pid in pids if (used := processor_seconds(pid)) is not None}
        before, looked_at = self._seconds, self._looked_at
        self._seconds, self._looked_at = seconds, now
        if looked_at is None or not seconds or now <= looked_at:
            return None
        used = sum(max(0.0, spent - before.get(pid, 0.0)) for pid, spent in seconds.items())
        return round(100 * used / (now - looked_at), 1)
