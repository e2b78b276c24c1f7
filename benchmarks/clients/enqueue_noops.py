"""Enqueue tasks of the benchmark, no-op ones if no other is named, 10,000 at a time."""

from __future__ import annotations

import sys

import django

django.setup()

from benchmarks import tasks  # noqa: E402

Call = tuple[tuple[object, ...], dict[str, object]]

if __name__ == "__main__":
    left, definition = int(sys.argv[1]), getattr(tasks, sys.argv[2])
    while left > 0:
        calls: list[Call] = [((), {})] * min(left, 10_000)
        definition.enqueue_many(calls)
        left -= 10_000
