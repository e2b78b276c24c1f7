"""How long a worker takes from its start to its first body."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.databases import PostgreSQL, SQLite
from benchmarks.figures import AtMost, Figure
from benchmarks.harness import OURS, Bench, in_turn, say
from benchmarks.processes import worker
from benchmarks.revision import BASELINE

TARGET = AtMost(0.65)


def measure(bench: Bench) -> Iterator[Figure]:
    """One worker with the defaults; the task is ready when it starts."""
    for name in ("PostgreSQL", "SQLite"):
        databases: dict[str, PostgreSQL | SQLite] = {
            revision: bench.postgresql_of(revision)
            if name == "PostgreSQL"
            else bench.new_sqlite("start", revision)
            for revision in bench.roots
        }
        seconds: dict[str, list[float]] = {revision: [] for revision in databases}
        # The first round compiles the files and reads them, and does not count: where a package is
        # installed, that is done.
        for number in range(bench.size.rounds + 1):
            for revision, database in in_turn(databases.items(), number):
                took = _start(database)
                if number:
                    seconds[revision].append(took)
                    say(f"  round {number}: {name}, {revision}: {took:.2f} s")
        what = f"from the start of runworker to its first body, {name}"
        yield Figure(what=what, unit="s", values=seconds[OURS])
        for other in bench.others:
            yield Figure(
                what=what,
                unit="s",
                values=seconds[OURS],
                against=other,
                counterparts=seconds[other],
                target=TARGET if other == BASELINE else None,
            )


def _start(database: PostgreSQL | SQLite) -> float:
    database.empty()
    database.enqueue(1, task="moment")
    began = time.time_ns()
    with worker("--drain", **database.where) as process:
        process.output()
    [(started,)] = database.query("SELECT return_value FROM taskqueue_task")
    return (int(started) - began) / 1e9
