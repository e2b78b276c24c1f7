"""What the workers run: next to nothing."""

from __future__ import annotations

import time

from taskqueue import task


@task
def noop(number: int = 0) -> None:
    """Nothing."""


@task
async def noop_async(number: int = 0) -> None:
    """Nothing, in a coroutine."""


@task
def moment(before: int = 0) -> int:
    """When the body started, in nanoseconds by the clock of this host."""
    return time.time_ns()
