"""Enqueue tasks that report when their body started, each at a random moment for an idle worker."""

from __future__ import annotations

import json
import random
import sys
import time

import django

django.setup()

from benchmarks.tasks import moment  # noqa: E402
from taskqueue.models import Task  # noqa: E402

SEED = 20_000
UNCOUNTED = 5
"""Tasks before the first that counts, while the worker and its children come up."""


def main(count: int, longest_pause: float) -> None:
    """Give, for each, the milliseconds from its commit, and from the call that enqueued it."""
    chance = random.Random(SEED)
    for _ in range(UNCOUNTED):
        moment.enqueue().wait(timeout=60)
    ids, called, committed = [], [], []
    for _ in range(count):
        time.sleep(chance.uniform(0.1, 1) * longest_pause)
        called.append(time.time_ns())
        # In autocommit mode: the call returns once the database has said that it is committed.
        result = moment.enqueue()
        committed.append(time.time_ns())
        ids.append(result.id)
    result.wait(timeout=60)
    while Task.objects.exclude(status="succeeded").exists():
        time.sleep(0.1)
    returned = dict(Task.objects.filter(id__in=ids).values_list("id", "return_value"))
    started = [int(returned[id] or 0) for id in ids]
    print(
        json.dumps(
            {
                "commit": [(b - a) / 1e6 for a, b in zip(committed, started, strict=True)],
                "call": [(b - a) / 1e6 for a, b in zip(called, started, strict=True)],
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
