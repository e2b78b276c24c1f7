"""Bodies for tasks of several workers."""

from __future__ import annotations

import os
import time

from taskqueue import current, task
from tests.sample.worker_tasks import append


@task
def name_worker() -> str:
    """Gives the name of the worker that runs it."""
    return current().worker_name


@task(max_crashes=20)
def stay(path: str, until: str) -> str:
    """Runs until a file appears."""
    append(path, "start")
    while not os.path.exists(until):
        time.sleep(0.02)
    append(path, "end")
    return current().worker_name


@task(max_attempts=10)
def fail_on(worker_name: str) -> str:
    """Fails on one worker, and only there."""
    if current().worker_name == worker_name:
        raise RuntimeError(f"not on {worker_name}")
    return current().worker_name


@task(atomic=True)
def name_worker_atomically() -> str:
    """As `name_worker`, recorded with its body."""
    return current().worker_name
