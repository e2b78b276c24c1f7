"""The tasks under limits of a run; `path` is the journal."""

from __future__ import annotations

import random
import time
from typing import Any

from taskqueue import Fixed, current, task
from taskqueue.declarations.limits import Concurrency, Fair, Rate, Sequence
from tests.sample.worker_tasks import append

PATIENT: dict[str, Any] = {"max_crashes": 100, "crash_delay": 0}
KEYS, SEQUENCES, TENANTS = 50, 20, 30
A_KEY, SHARED, A_SECOND = 2, 12, 100
NUMBERS = {"chaos.keyed": A_KEY, "chaos.shared": SHARED, "chaos.rate": A_SECOND}
"""What the code declares, by the limits' names."""


def _body(path: str, seconds: float) -> None:
    append(path, "start")
    time.sleep(seconds)
    append(path, "end")


@task(concurrency=Concurrency(A_KEY, key="key", name="chaos.keyed"), **PATIENT)
def keyed(path: str, key: int, seconds: float) -> None:
    """Two at once of each key."""
    _body(path, seconds)


@task(concurrency=Concurrency(SHARED, name="chaos.shared"), queue_name="second", **PATIENT)
def shared(path: str, seconds: float) -> None:
    """Twelve at once, together with those of tenants."""
    _body(path, seconds)


@task(
    concurrency=Concurrency(SHARED, name="chaos.shared"),
    fair=Fair("tenant"),
    **PATIENT,
)
def of_tenant(path: str, tenant: int, seconds: float) -> None:
    """Shares its queue fairly."""
    _body(path, seconds)


@task(rate=Rate(f"{A_SECOND}/s", name="chaos.rate"), **PATIENT)
def rated(path: str) -> None:
    """A hundred a second."""
    _body(path, 0.0)


@task(sequence=Sequence("key", name="chaos.order"), max_attempts=3, backoff=Fixed(0.1), **PATIENT)
def ordered(path: str, key: int, fails: int, seconds: float) -> None:
    """One after the other, also where its first attempts fail."""
    _body(path, seconds)
    if current().attempt <= fails:
        raise ValueError(fails)


@task(concurrency=Concurrency(A_KEY, key="key", name="chaos.keyed"), requires={"gpu"}, **PATIENT)
def tagged(path: str, key: int, seconds: float) -> None:
    """Needs a worker with a tag, and shares the keys' places."""
    _body(path, seconds)


def enqueue_some(path: str, chance: random.Random, most: int) -> int:
    """Enqueue up to so many of one kind, one by one or in one transaction; how many."""
    count = min(most, chance.choice((1, 1, 3, 20)))
    pause = chance.choice((0.0, 0.002, 0.01, 0.03))
    kind = chance.choice(("keyed", "keyed", "shared", "tenant", "rated", "ordered", "tagged"))
    definition, arguments = {
        "keyed": (keyed, lambda: (path, _skewed(chance, KEYS), pause)),
        "shared": (shared, lambda: (path, pause)),
        "tenant": (of_tenant, lambda: (path, _skewed(chance, TENANTS), pause)),
        "rated": (rated, lambda: (path,)),
        "ordered": (ordered, lambda: (path, chance.randrange(SEQUENCES), _fails(chance), pause)),
        "tagged": (tagged, lambda: (path, _skewed(chance, KEYS), pause)),
    }[kind]
    definition.enqueue_many([(arguments(), {}) for _ in range(count)])
    return count


def _skewed(chance: random.Random, number: int) -> int:
    """One of so many, the first far more often."""
    return int(number * chance.random() ** 3)


def _fails(chance: random.Random) -> int:
    return chance.choice((0, 0, 0, 0, 1, 2))
