"""Enqueue chains, and single tasks, each for an idle worker, and report when their bodies started.

A body does nothing else, so the end of a step is the moment at which its body started. Each step
gets the result of the one before.
"""

from __future__ import annotations

import json
import random
import sys
import time
from itertools import pairwise

import django

django.setup()

from benchmarks.tasks import moment  # noqa: E402
from taskqueue import chain  # noqa: E402
from taskqueue.models import Member  # noqa: E402

SEED = 20_000
STEPS = 11
"""Steps of a chain: ten hops."""
UNCOUNTED = 3
"""Chains before the first that counts, while the worker and its children come up."""
PAUSE = 0.1
"""The longest seconds before each enqueue."""
UNWATCHED = 0.02
"""Seconds for a task until this client first asks: its questions would slow the worker down."""


def main(count: int) -> None:
    """Give the milliseconds of so many hops, and of as many pick-ups since the commit."""
    chance = random.Random(SEED)
    for _ in range(UNCOUNTED):
        hops()
        pick_up()
    measured: dict[str, list[float]] = {"hop": [], "pick-up": []}
    while len(measured["hop"]) < count:
        time.sleep(chance.random() * PAUSE)
        measured["hop"] += hops()
        for _ in range(STEPS - 1):
            time.sleep(chance.random() * PAUSE)
            measured["pick-up"].append(pick_up())
    print(json.dumps(measured))


def hops() -> list[float]:
    """Run one chain: the milliseconds from the end of each step to the start of the next."""
    run = chain(*(moment.s() for _ in range(STEPS))).enqueue()
    time.sleep(STEPS * UNWATCHED)
    run.wait(60)
    members = Member.objects.filter(step__workflow_id=run.id)
    moments = members.values_list("task__return_value", flat=True)
    return [(after - before) / 1e6 for before, after in pairwise(sorted(moments))]


def pick_up() -> float:
    """Run one task: the milliseconds from its commit to the start of its body."""
    result = moment.enqueue()
    committed = time.time_ns()
    time.sleep(UNWATCHED)
    started: int = result.wait(60).return_value
    return (started - committed) / 1e6


if __name__ == "__main__":
    main(int(sys.argv[1]))
