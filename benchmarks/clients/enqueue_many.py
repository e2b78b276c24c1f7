"""Enqueue in bulk, and insert the same rows by unnest and by COPY, by turns."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

import django

django.setup()

import psycopg  # noqa: E402
from django.db import connection  # noqa: E402

from benchmarks.tasks import noop  # noqa: E402
from taskqueue.core.uuid7 import uuid7_hex  # noqa: E402

COLUMNS = """
    id, args, name, queue_name, status, priority, run_after, kwargs, options, metadata,
    attempt, failures, crashes, max_attempts, max_crashes, crash_delay, unique_for,
    holds_unique_key, error_class, error_message, enqueued_at, ready_at
"""

INSERT = f"""
INSERT INTO taskqueue_task ({COLUMNS})
SELECT
    id, args, 'benchmarks.tasks.noop', 'default', 'ready', 0, clock.now, '{{}}', '{{}}', '{{}}',
    0, 0, 0, 1, 3, interval '10 seconds', '', false, '', '', clock.now, clock.now
FROM unnest(%s::uuid[], %s::jsonb[]) AS task (id, args)
CROSS JOIN (SELECT clock_timestamp() AS now) AS clock
"""


def enqueue(session: psycopg.Connection[Any], count: int) -> None:
    """As a project does it."""
    noop.enqueue_many([((number,), {}) for number in range(count)])


def unnest(session: psycopg.Connection[Any], count: int) -> None:
    """One INSERT from arrays."""
    ids = [uuid7_hex() for _ in range(count)]
    session.execute(INSERT, (ids, [f"[{number}]" for number in range(count)]))


def copy(session: psycopg.Connection[Any], count: int) -> None:
    """One COPY of ready text."""
    now = datetime.now(UTC).isoformat()
    rest = (
        f"\tbenchmarks.tasks.noop\tdefault\tready\t0\t{now}\t{{}}\t{{}}\t{{}}"
        f"\t0\t0\t0\t1\t3\t10 seconds\t\tf\t\t\t{now}\t{now}\n"
    )
    text = "".join([f"{uuid7_hex()}\t[{number}]{rest}" for number in range(count)])
    with (
        session.cursor() as cursor,
        cursor.copy(f"COPY taskqueue_task ({COLUMNS}) FROM STDIN") as (stream),
    ):
        stream.write(text)


def main(rounds: int, count: int) -> None:
    """Measure, after a round that does not count."""
    sides = {"unnest": unnest, "copy": copy, "enqueue": enqueue}
    rates: dict[str, list[float]] = {side: [] for side in sides}
    connection.ensure_connection()
    session = psycopg.connect(connection.connection.info.dsn, autocommit=True)
    for turn in range(rounds + 1):
        for name, side in sides.items():
            began = time.perf_counter()
            side(session, count)
            if turn:
                rates[name].append(count / (time.perf_counter() - began))
    print(json.dumps(rates))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
