"""Enqueue short tasks with a given number of keys, in turns."""

from __future__ import annotations

import sys

import django

django.setup()

from benchmarks import tasks  # noqa: E402

if __name__ == "__main__":
    definition, count, keys = getattr(tasks, sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for first in range(0, count, 10_000):
        numbers = range(first, min(first + 10_000, count))
        definition.enqueue_many([((number % keys,), {}) for number in numbers])
