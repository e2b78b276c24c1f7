"""The bodies of the mixture. Each appends to the journal when it starts; `path` is the journal."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any

from taskqueue import Cancel, Fixed, GiveUp, RetryLater, Snooze, current, task
from tests.sample.worker_tasks import append, mark_here

# For the fault of children that cannot start.
if os.path.exists(os.environ.get("CHAOS_BROKEN_CODE") or "/nowhere"):
    raise ImportError("This project is broken on purpose.")

# A fault may take an attempt many times, and must not make a task fail by that.
PATIENT: dict[str, Any] = {"max_crashes": 100, "crash_delay": 0}
# A body that needs the database fails while that is away, and is tried again.
PERSISTENT: dict[str, Any] = {**PATIENT, "max_attempts": 200, "backoff": Fixed(0.3)}

OWN_EXIT = 11
"""The exit code of a body that ends its process."""


class OnPurpose(Exception):
    """A body was told to fail."""


@task(**PATIENT)
def work(path: str, seconds: float = 0) -> int:
    """Appends when it starts and when it ends; touches no database."""
    append(path, "start")
    time.sleep(seconds)
    append(path, "end")
    return current().attempt


@task(**PATIENT)
async def work_async(path: str, seconds: float = 0) -> int:
    """As `work`, on the event loop."""
    import asyncio

    append(path, "start")
    await asyncio.sleep(seconds)
    append(path, "end")
    return current().attempt


@task(atomic=True, **PERSISTENT)
def act_atomically(path: str, seconds: float = 0) -> int:
    """Leaves one effect, in the transaction of its success."""
    append(path, "start")
    mark_here("atomic")
    time.sleep(seconds)
    return current().attempt


@task(atomic=True, **PERSISTENT)
def act_atomically_at_last(path: str, failures: int) -> int:
    """Leaves an effect in each attempt, of which only the last one's may stay."""
    append(path, "start")
    mark_here("atomic")
    if _failures() < failures:
        raise OnPurpose
    return current().attempt


@task(**PERSISTENT)
def act(path: str) -> int:
    """Leaves an effect of its own transaction: once for each attempt that came so far."""
    append(path, "start")
    mark_here("plain")
    return current().attempt


@task(max_attempts=3, backoff=Fixed(0.05), **PATIENT)
def fail_at_last(path: str) -> None:
    """Fails three times, and for good."""
    append(path, "start")
    raise OnPurpose


@task(**PATIENT)
def give_up(path: str) -> None:
    """Fails for good at once."""
    append(path, "start")
    raise GiveUp("no use")


@task(**PATIENT)
def cancel(path: str) -> None:
    """Ends as cancelled."""
    append(path, "start")
    raise Cancel("not needed")


@task(**PATIENT)
def retry_later(path: str, times: int) -> int:
    """Asks to be retried."""
    append(path, "start")
    if current().attempt <= times:
        raise RetryLater(0.05)
    return current().attempt


@task(**PATIENT)
def snooze(path: str, times: int) -> int:
    """Sleeps on it."""
    append(path, "start")
    if current().attempt <= times:
        raise Snooze(timedelta(seconds=0.05))
    return current().attempt


@task(**PATIENT)
def crash_once(path: str) -> int:
    """Takes its process down in its first attempt."""
    append(path, "start")
    if current().attempt == 1:
        os._exit(OWN_EXIT)
    return current().attempt


@task(unique_key=lambda path, key: f"chaos:{key}", **PATIENT)
def alone(path: str, key: str) -> str:
    """Holds its key while it runs."""
    append(path, f"enter {key}")
    time.sleep(0.005)
    append(path, f"leave {key}")
    return key


@task(**PATIENT)
def beat(path: str, until: str) -> int:
    """Appends ten times a second until a file appears."""
    append(path, "start")
    while not os.path.exists(until):
        append(path, "beat")
        time.sleep(0.1)
    append(path, "end")
    return current().attempt


@task(**PATIENT)
def be_refused(path: str) -> str:
    """Returns what the database is told to refuse."""
    append(path, "start")
    return "refuse this"


if os.environ.get("CHAOS_NEWER_CODE"):

    @task(name="tests.chaos.tasks.of_tomorrow", **PATIENT)
    def of_tomorrow(path: str) -> int:
        """Known to newer workers only."""
        append(path, "start")
        return current().attempt


def _failures() -> int:
    from taskqueue.models import Task

    return int(Task.objects.values_list("failures", flat=True).get(id=current().task_id))


# Autodiscovery imports this module only.
from tests.chaos import (  # noqa: E402
    bad_bodies,  # noqa: F401
    batch_bodies,  # noqa: F401
    event_bodies,  # noqa: F401
    limit_bodies,  # noqa: F401
    mixture_bodies,  # noqa: F401
    workflow_bodies,  # noqa: F401
)
