"""Bodies for tests of tracing and of records."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from typing import Any

from taskqueue import current, task
from tests.sample.models import Effect

logger = logging.getLogger("shop")


def _leave_mark() -> None:
    Effect.objects.create(task_id=current().task_id, attempt=current().attempt)


@task
def order(canary: str) -> str:
    """Begin a chain of tasks, each of which enqueues the next."""
    _leave_mark()
    charge.enqueue(canary)
    return canary


@task
def charge(canary: str) -> str:
    _leave_mark()
    ship.enqueue(canary)
    return canary


@task
def ship(canary: str) -> str:
    _leave_mark()
    return canary


@task
async def order_async(canary: str) -> str:
    """Enqueue from an event loop."""
    await ship.aenqueue(canary)
    return canary


@task(per_slot=4)
async def share(canary: str) -> str:
    """Enqueue beside others on one event loop."""
    await ship.aenqueue(canary)
    return canary


@task(sensitive=["password"])
def sign_in(password: str) -> None:
    raise ValueError(f"{password} is wrong")


@task
def refuse(reason: str) -> None:
    raise ValueError(f"refused: {reason}")


@task(max_crashes=3, crash_delay=0)
def die_once(path: str) -> int:
    """Kill the own process, and succeed the next time."""
    if current().attempt == 1:
        Path(path).write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return current().attempt


@task
def part(number: int) -> int:
    return number


@task
def whole(parts: list[Any]) -> int:
    return sum(parts)


@task
def say(word: str) -> None:
    """Log through a logger of the project, and an error with its cause."""
    logger.warning("the word is out", extra={"count": 3, "request": object()})
    try:
        raise KeyError("inner")
    except KeyError:
        logger.exception("it went wrong\nin two lines")


@task
def fail_quietly(secret: str) -> None:
    raise ValueError("of no use")
