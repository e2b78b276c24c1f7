"""The bodies of the small runs that reveal bugs. `journal` is a file to which they append."""

from __future__ import annotations

import os
import time
from pathlib import Path

from django.db import transaction

from taskqueue import Fixed, Snooze, current, task
from tests.chaos import batch_bodies, limit_bodies, workflow_bodies  # noqa: F401  (registers them)
from tests.chaos.bugs import clients  # noqa: F401
from tests.chaos.clients import ClientLog
from tests.sample.worker_tasks import append, mark_here


@task(max_crashes=20, crash_delay=0)
def work(journal: str, seconds: float) -> int:
    """Appends every tenth of a second."""
    append(journal, "start")
    ends_at = time.monotonic() + seconds
    while (left := ends_at - time.monotonic()) > 0:
        time.sleep(min(0.1, left))
        append(journal, "beat")
    return current().attempt


@task(max_attempts=5, backoff=Fixed(0), max_crashes=20, crash_delay=0)
def answer_twice(journal: str, go: str, fails: bool) -> int:
    """Its first attempt ends when a file is there, a second one takes its time."""
    append(journal, "start")
    if current().attempt > 1:
        time.sleep(1.5)
        return current().attempt
    while not os.path.exists(go):
        time.sleep(0.01)
    current().log("nearly there")
    current().progress(99)
    if fails:
        raise ValueError("in vain")
    return current().attempt


@task(max_crashes=20, crash_delay=0)
def leave_after(journal: str, go: str) -> None:
    """Ends when a file is there."""
    append(journal, "start")
    while not os.path.exists(go):
        time.sleep(0.02)
    append(journal, "left")


@task(max_crashes=2, crash_delay=0)
def crash(journal: str) -> None:
    """Takes its process down."""
    append(journal, "start")
    os._exit(9)


@task(max_attempts=2, backoff=Fixed(0))
def fail(journal: str) -> None:
    """Never succeeds."""
    append(journal, "start")
    raise ValueError("in vain")


@task
def snooze_once(journal: str) -> int:
    """Comes again a little later."""
    append(journal, "start")
    if current().attempt == 1:
        raise Snooze(0.1)
    return current().attempt


@task(atomic=True, max_crashes=20, crash_delay=0)
def crash_behind_commit(journal: str) -> int:
    """In its first attempt, its process dies behind the commit of its effect."""
    append(journal, "start")
    mark_here("atomic")
    if current().attempt == 1:
        transaction.on_commit(lambda: os._exit(9))
    return current().attempt


@task
def finish_when_asked(journal: str) -> str:
    """Sees that it is asked to stop, and returns as if it had not been."""
    append(journal, "start")
    while not current().stop_requested:
        time.sleep(0.01)
    return "done all the same"


@task
def ignore_stop(journal: str, seconds: float) -> str:
    """Catches whatever is raised in it."""
    append(journal, "start")
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        try:
            time.sleep(0.05)
        except BaseException:
            continue
    return "done all the same"


@task(unique_key=lambda journal, key: key)
def hold_key(journal: str, key: str) -> str:
    """Holds its key for a while."""
    append(journal, "start")
    time.sleep(0.03)
    return key


@task(unique_key=lambda journal, key: key)
def hold_same_key(journal: str, key: str) -> str:
    """Holds the same keys in a scope of its own."""
    append(journal, "start")
    time.sleep(0.03)
    return key


@task
def publish(journal: str, log_path: str, first: int, count: int) -> int:
    """A client: asks for tasks that hold keys, changes its mind at times, and logs it all."""
    append(journal, "start")
    log = ClientLog(Path(log_path))
    for sequence in range(first, first + count):
        key = f"key {sequence % 2}"
        own = hold_same_key if sequence % 4 == 2 else hold_key
        log.asked(sequence, kind="hold_key", unique_key=key, unique_scope=own.unique_scope)
        definition = own.using(metadata={"sequence": sequence})
        if sequence % 4 == 3:
            with transaction.atomic():
                definition.enqueue(journal, f"{key} of {sequence}")
                transaction.set_rollback(True)
            log.failed(sequence)
        else:
            result = definition.enqueue(journal, key)
            log.ok(sequence, [result.id], created=result.created)
        time.sleep(0.01)
    log.close()
    return count
