"""Bodies that pass their limits of time and memory, or leave memory to those that follow."""

from __future__ import annotations

import os
import time

from taskqueue import Fixed, TaskTimeout, current, task

_kept: list[bytes] = []


@task(timeout=0.3, max_attempts=2, backoff=Fixed(0))
def check_after_limit() -> str:
    """Catches the end of its time limit, and asks whether it may go on."""
    if current().attempt > 1:
        return "done"
    try:
        time.sleep(60)
    except TaskTimeout:
        current().check()
    return "went on"


@task
def leak(megabytes: int) -> int:
    """Leave memory to the process, and return its id."""
    _kept.append(b"x" * (megabytes * 1_000_000))
    return os.getpid()


@task(max_memory=300, max_attempts=1)
def stay_small(seconds: float) -> int:
    """Take no memory, for longer than the worker takes to look; return the process's id."""
    time.sleep(seconds)
    return os.getpid()
