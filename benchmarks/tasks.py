"""The tasks that the workers run: they do next to nothing."""

from __future__ import annotations

import time
from contextlib import suppress

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


SHORT = 0.005
"""Seconds of a body that waits for something."""


@task
def short(key: int = 0) -> None:
    """Wait, as for a service."""
    time.sleep(SHORT)


with suppress(ImportError):  # Older commits, which are measured beside this one, have no limits.
    from benchmarks.limited_tasks import fair, held, rated, short_limited, wide  # noqa: F401
