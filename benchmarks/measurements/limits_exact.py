"""Rates and fair shares, computed from the leases' times."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise

from benchmarks.databases import PostgreSQL
from benchmarks.figures import Above, Below, Figure
from benchmarks.harness import Bench, say
from benchmarks.processes import Failed, client, worker

RATE, WORKERS = 100, 4
SECONDS = 20
"""For which the rate is held, after the first hundred starts."""
TENANTS = 20
CROWD = 100_000
"""Tasks of the tenant who leaves another one alone with his."""
LONGEST = 240.0
"""Seconds after which a run is taken to hang."""
STARTS = """
SELECT EXTRACT(epoch FROM lease.claimed_at)::float8, (task.args ->> 0)::int, lease.worker_id
FROM taskqueue_lease AS lease
JOIN taskqueue_task AS task ON task.id = lease.task_id
ORDER BY lease.claimed_at, lease.id
"""
READY_AT = """
SELECT EXTRACT(epoch FROM ready_at)::float8 FROM taskqueue_task WHERE args = '[1]'::jsonb
"""
IDLE = "SELECT count(*) FROM taskqueue_worker WHERE is_idle"
SUCCEEDED = """
SELECT count(*)
FROM taskqueue_task
WHERE status = 'succeeded' AND (%s::int IS NULL OR args = jsonb_build_array(%s::int))
"""
Starts = list[tuple[float, int, str]]


def measure(bench: Bench) -> Iterator[Figure]:
    """A rate with several workers, then tenants who have much, one task, or as much as others."""
    yield from _rate(bench)
    yield from _lone_task(bench)
    yield from _equal_tenants(bench)


def _rate(bench: Bench) -> Iterator[Figure]:
    """Count from the first start to the last, of workers that wait for tasks when these come."""
    count = RATE + SECONDS * RATE
    most, reached = [], []
    for number in range(bench.size.rounds):
        database = bench.postgresql
        with _Workers(database, WORKERS):
            _wait_until_idle(database, WORKERS)
            _enqueue(database, "rated", count, 1)
            _wait_for(database, count)
        starts = [at for at, _, _ in database.query(STARTS)]
        most.append(float(_most_within(starts, 1.0)))
        # The first hundred start at once, and take no time.
        reached.append((count - RATE) / (starts[-1] - starts[0]))
        say(f"  round {number + 1}: at most {most[-1]:.0f} in a second, {reached[-1]:.1f}/s")
    words = f"a rate of {RATE}/s, {WORKERS} workers"
    yield Figure(
        what=f"{words}: most starts within any second", unit="starts", values=most,
        target=Below(RATE),
    )  # fmt: skip
    yield Figure(
        what=f"{words}: starts", unit="starts/s", values=reached, target=Above(0.95 * RATE)
    )


def _lone_task(bench: Bench) -> Iterator[Figure]:
    between, before = [], []
    crowd = CROWD if bench.size.rounds > 2 else CROWD // 10
    for number in range(bench.size.rounds):
        database = bench.postgresql
        _enqueue(database, "fair", crowd, 1)
        with _Workers(database, 1):
            _wait_for(database, 500)
            with client("enqueue_fair", 1, **database.where) as process:
                process.output()
            ((ready_at,),) = database.query(READY_AT)
            _wait_for(database, 1, tenant=1)
        starts: Starts = database.query(STARTS)
        own = next(at for at, tenant, _ in starts if tenant == 1)
        between.append(float(len({at for at, _, _ in starts if ready_at < at < own})))
        within = [tenant for at, tenant, _ in starts if at == own]
        before.append(float(within.index(1)))
        say(f"  round {number + 1}: {between[-1]:.0f} claims, {before[-1]:.0f} tasks before")
    words = f"a task beside {crowd:,} of another tenant"
    yield Figure(
        what=f"{words}: claims before its own, after it was there", unit="claims", values=between,
        target=Below(2),
    )  # fmt: skip
    yield Figure(
        what=f"{words}: tasks before it in its claim", unit="tasks", values=before, target=Below(1)
    )


def _equal_tenants(bench: Bench) -> Iterator[Figure]:
    indexes = []
    each = bench.size.tasks // TENANTS
    for number in range(bench.size.rounds):
        database = bench.postgresql
        # Tenant after tenant, so that a queue in its order would be as unfair as can be.
        for tenant in range(TENANTS):
            with client("enqueue_fair", tenant, each, **database.where) as process:
                process.output()
        database.settle()
        starts = _run(database, workers=WORKERS, until=TENANTS * each)
        # While all have work.
        counts = Counter(tenant for _, tenant, _ in starts[: TENANTS * each // 2])
        shares = [counts[tenant] for tenant in range(TENANTS)]
        indexes.append(sum(shares) ** 2 / (TENANTS * sum(share**2 for share in shares)))
        say(f"  round {number + 1}: Jain's index {indexes[-1]:.4f}")
    yield Figure(
        what=f"Jain's index of the starts of {TENANTS} equal tenants, {WORKERS} workers",
        unit="", values=indexes, target=Above(0.99),
    )  # fmt: skip


def _most_within(starts: list[float], seconds: float) -> int:
    """Return the most starts of any window of that length, wherever it begins."""
    assert all(one <= next for one, next in pairwise(starts))
    most = first = 0
    for number, at in enumerate(starts, 1):
        while starts[first] <= at - seconds:
            first += 1
        most = max(most, number - first)
    return most


def _enqueue(database: PostgreSQL, name: str, count: int, keys: int) -> None:
    with client("enqueue_keys", name, count, keys, **database.where) as process:
        process.output()
    database.settle()


class _Workers(ExitStack):
    """Workers that serve until the end of the block."""

    def __init__(self, database: PostgreSQL, number: int) -> None:
        super().__init__()
        self._processes = [
            self.enter_context(
                worker("--pool", "thread", "--concurrency", "8", "--name", f"w{n}",
                       **database.where)
            )
            for n in range(number)
        ]  # fmt: skip
        self.callback(self._end)

    def _end(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.output()


def _run(database: PostgreSQL, *, workers: int, until: int) -> Starts:
    """Let workers run until so many tasks have succeeded; their starts."""
    with _Workers(database, workers):
        _wait_for(database, until)
    starts: Starts = database.query(STARTS)
    return starts


def _wait_until_idle(database: PostgreSQL, count: int) -> None:
    """Wait until so many workers sleep. Raises `Failed`."""
    ends_at = time.monotonic() + LONGEST
    while database.query(IDLE)[0][0] < count:
        if time.monotonic() > ends_at:
            raise Failed("Workers did not start.")
        time.sleep(0.1)


def _wait_for(database: PostgreSQL, count: int, tenant: int | None = None) -> None:
    """Wait until so many tasks have succeeded, of all tenants or of one. Raises `Failed`."""
    ends_at = time.monotonic() + LONGEST
    while database.query(SUCCEEDED, (tenant, tenant))[0][0] < count:
        if time.monotonic() > ends_at:
            raise Failed("Tasks under limits did not end.")
        time.sleep(0.1)
