"""Claiming and recording while many other tasks are ready, finished, or scheduled for later."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.databases import PostgreSQL
from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import Bench, in_turn, say
from benchmarks.processes import client

TARGET = AtLeast(0.95)
UNCOUNTED = 1_000
"""Tasks that the client takes before the first that counts."""


def measure(bench: Bench) -> Iterator[Figure]:
    """The engine's own statements in a loop; each round visits every table once."""
    size = bench.size
    backlogs = {"ready": size.backlog, "finished": size.finished, "scheduled": size.backlog}
    databases = {"empty": bench.new_postgresql("backlog_empty")}
    for status, count in backlogs.items():
        databases[status] = bench.new_postgresql(f"backlog_{status}")
        databases[status].fill(status, count)
        say(f"  {count:,} {status}")
    bench.server.query("CHECKPOINT")
    rates: dict[str, list[float]] = {status: [] for status in databases}
    used: dict[str, list[float]] = {status: [] for status in databases}
    # The first round brings the pages into memory, and does not count.
    for number in range(size.rounds + 1):
        for status, database in in_turn(databases.items(), number):
            rate, microseconds = _loop(database, size.backlog_tasks)
            if number:
                rates[status].append(rate)
                used[status].append(microseconds)
                say(f"  round {number}: {status}: {rate:,.0f}/s")
    yield Figure(what="claim and record, empty table", unit="tasks/s", values=rates["empty"])
    for status, count in backlogs.items():
        yield Figure(
            what=f"claim and record beside {count:,} {status}",
            unit="tasks/s",
            values=rates[status],
            against="empty table",
            counterparts=rates["empty"],
            target=TARGET,
        )
        yield Figure(
            what=f"server's processor time per task beside {count:,} {status}",
            unit="µs",
            values=used[status],
            against="empty table",
            counterparts=used["empty"],
        )
    for database in databases.values():
        bench.drop(database)


def _loop(database: PostgreSQL, tasks: int) -> tuple[float, float]:
    """Claim and record as many as are added before: the rate, the server's microseconds each."""
    database.fill("ready", tasks + UNCOUNTED)
    with client("claim_and_record", tasks, settings=database.settings) as process:
        rate, microseconds = process.answer()
    return float(rate), float(microseconds)
