"""The memory of processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable


def resident_bytes(pid: int) -> int | None:
    """The memory of a process; None where the host does not tell, or it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None


def memory_of(pids: Iterable[int]) -> int | None:
    """The memory of these processes; None where the host does not tell.

    Shared pages are counted for each.
    """
    sizes = [size for size in map(resident_bytes, pids) if size is not None]
    return sum(sizes) if sizes else None


def resident_megabytes() -> float:
    """The memory of this process."""
    size = resident_bytes(os.getpid())
    if size is not None:
        return size / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
