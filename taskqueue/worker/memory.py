"""How much memory processes hold."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable


def resident_bytes(pid: int) -> int | None:
    """What a process holds now; None where the host does not tell, or it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None


def memory_of(pids: Iterable[int]) -> int | None:
    """What they hold in all; None where the host does not tell.

    What they share is counted for each.
    """
    held = [size for size in map(resident_bytes, pids) if size is not None]
    return sum(held) if held else None


def resident_megabytes() -> float:
    """How much memory this process holds."""
    size = resident_bytes(os.getpid())
    if size is not None:
        return size / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
