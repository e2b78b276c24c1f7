"""Enqueue no-op tasks, 10,000 at a time."""

from __future__ import annotations

import sys

import django

django.setup()

from benchmarks.tasks import noop  # noqa: E402

if __name__ == "__main__":
    left = int(sys.argv[1])
    while left > 0:
        noop.enqueue_many([((number,), {}) for number in range(min(left, 10_000))])
        left -= 10_000
