"""How many statements a worker sends while it drains and while it is idle.

They are counted in the client, in the worker and its children, by a wrapper around every execution
through Django's connections: BEGIN and COMMIT count, statements that open a connection do not. The
transactions that the server counts are shown beside them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.databases import PostgreSQL, SQLite
from benchmarks.figures import Below, Figure
from benchmarks.harness import Bench
from benchmarks.processes import LONGEST, Failed, worker

SETTLING = 5.0
"""Seconds after the last task in which a worker may still turn from busy to idle."""
LEAST_IDLE = 20
"""Seconds that hold the rarer duties of a worker: fewer would judge it too kindly."""
READY = "SELECT count(*) FROM taskqueue_task WHERE status <> 'succeeded'"
TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{}'"


def measure(bench: Bench) -> Iterator[Figure]:
    """Draining in both pools, and idle, on both databases."""
    size = bench.size
    sqlite = bench.new_sqlite("statements")
    for pool in ("process", "thread"):
        database = bench.postgresql
        database.fill("ready", size.tasks)
        yield _draining(f"PostgreSQL, {pool} pool", pool, database, size.tasks)
    sqlite.fill(size.sqlite_tasks)
    yield _draining("SQLite, process pool", "process", sqlite, size.sqlite_tasks)
    database = bench.postgresql
    database.fill("ready", 1)
    question = TRANSACTIONS.format(database.settings["NAME"])
    statements, transactions = _idle(
        database, size.idle_seconds, lambda: int(bench.server.query(question))
    )
    yield Figure(
        what="statements of an idle worker, PostgreSQL",
        unit="/s",
        values=[statements],
        target=Below(1) if size.idle_seconds >= LEAST_IDLE else None,
    )
    yield Figure(
        what="transactions of an idle worker, by pg_stat_database",
        unit="/s",
        values=[transactions],
    )
    sqlite.fill(1)
    statements, _ = _idle(sqlite, size.idle_seconds, lambda: 0)
    yield Figure(what="statements of an idle worker, SQLite", unit="/s", values=[statements])


def _draining(name: str, pool: str, database: PostgreSQL | SQLite, tasks: int) -> Figure:
    arguments = ("--drain", "--pool", pool)
    with _counting() as counter:
        with worker(*arguments, settings=database.settings, env=_env(counter)) as process:
            process.output()
        count = counter.stat().st_size
    what = f"statements per task of a drain, {name}, start and end included"
    return Figure(what=what, unit="", values=[count / tasks])


def _idle(
    database: PostgreSQL | SQLite, seconds: float, transactions: Callable[[], int]
) -> tuple[float, float]:
    """Statements and transactions a second of a worker that has run what there was to run."""
    with _counting() as counter, worker(settings=database.settings, env=_env(counter)):
        deadline = time.monotonic() + LONGEST
        while database.query(READY)[0][0]:
            if time.monotonic() > deadline:
                raise Failed(f"The worker left tasks undone for {LONGEST} s.")
            time.sleep(0.1)
        database.close()
        time.sleep(SETTLING)
        began, sent, committed = time.monotonic(), counter.stat().st_size, transactions()
        time.sleep(seconds)
        passed = time.monotonic() - began
        sent, committed = counter.stat().st_size - sent, transactions() - committed
    return sent / passed, committed / passed


@contextmanager
def _counting() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="taskqueue-benchmark-") as folder:
        counter = Path(folder) / "statements"
        counter.touch()
        yield counter


def _env(counter: Path) -> dict[str, str]:
    return {"TASKQUEUE_BENCHMARK_STATEMENTS": str(counter)}
