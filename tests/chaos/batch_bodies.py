"""The bodies of batches, and bodies that collect and fire events; `path` is the journal."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from django.db import transaction

from taskqueue import Batch, task
from taskqueue.engine.batches.by_hand import fire_group
from taskqueue.exceptions import TransitionRefused
from tests.chaos.batch_rows import EventLog
from tests.sample.worker_tasks import append

MOST = 7
"""Events of a batch."""
GROUPS = ("a", "b", "c")
PATIENT: dict[str, Any] = {"max_crashes": 100, "crash_delay": 0}


@task(batch=Batch(max_size=MOST, grace=0.3, max_delay=2), **PATIENT)
def digest(events: list[dict[str, Any]]) -> int:
    """Returns how many events it was given."""
    return len(events)


class ChangedMind(Exception):
    """Rolls a transaction back."""


def collect_some(log: EventLog, chance: random.Random, first: int, count: int) -> None:
    """Collect events in a transaction, which is rolled back at times."""
    group = chance.choice(GROUPS)
    events = [{"number": first + n, "group": group} for n in range(count)]
    log.note("asked", events)
    try:
        with transaction.atomic():
            digest.collect_many(events, group=group)
            if chance.random() < 0.1:
                raise ChangedMind
    except ChangedMind:
        log.note("failed", events)
    else:
        log.note("ok", events)


@task(**PATIENT)
def collect(path: str, log_path: str, first: int, count: int) -> None:
    """Collects that many events, one by one or in small lists."""
    append(path, "start")
    chance = random.Random(first)
    number = first
    while number < first + count:
        size = min(chance.randrange(1, 5), first + count - number)
        collect_some(EventLog(Path(log_path)), chance, number, size)
        number += size
        time.sleep(0.005)


@task(**PATIENT)
def fire(path: str, times: int) -> int:
    """Fires groups by hand, as often as that; how many batches that made."""
    append(path, "start")
    made = 0
    for number in range(times):
        try:
            made += len(fire_group(digest.name, GROUPS[number % len(GROUPS)]))
        except TransitionRefused:
            time.sleep(0.002)
    return made
