"""Enqueue one by one, and insert the same rows through Django's cursor, by turns."""

from __future__ import annotations

import json
import sys
import time

import django

django.setup()

from django.db import connection  # noqa: E402

from benchmarks.tasks import noop  # noqa: E402
from taskqueue.core.uuid7 import uuid7_hex  # noqa: E402

INSERT = """
INSERT INTO taskqueue_task (
    id, name, queue_name, status, priority, run_after, args, kwargs, options, metadata,
    attempt, failures, crashes, max_attempts, max_crashes, crash_delay, unique_for,
    holds_unique_key, error_class, error_message, enqueued_at, ready_at
) VALUES (
    %s, %s, %s, 'ready', %s, clock_timestamp(), %s, %s, '{}', '{}',
    0, 0, 0, %s, %s, %s, '', false, '', '', clock_timestamp(), clock_timestamp()
)
"""
TURN = 50
"""Inserts of one side before the other has its turn."""


def enqueue(count: int) -> None:
    """As a project does it."""
    for number in range(count):
        noop.enqueue(number)


def insert(count: int) -> None:
    """The least that Django's cursor can do."""
    name = noop.name
    for number in range(count):
        with connection.cursor() as cursor:
            cursor.execute(
                INSERT,
                (uuid7_hex(), name, "default", 0, f"[{number}]", "{}", 1, 3, "10 seconds"),
            )


def main(rounds: int, count: int) -> None:
    """Measure, after a round that does not count."""
    sides = {"raw": insert, "enqueue": enqueue}
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for side in sides.values():
        side(TURN)
    for _ in range(rounds):
        seconds = dict.fromkeys(sides, 0.0)
        for _ in range(0, count, TURN):
            for name, side in sides.items():
                began = time.perf_counter()
                side(TURN)
                seconds[name] += time.perf_counter() - began
        for name in sides:
            rates[name].append(count / seconds[name])
    print(json.dumps(rates))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
