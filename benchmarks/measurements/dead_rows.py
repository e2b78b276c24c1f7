"""Draining while dead rows are not removed: autovacuum is off, or an old snapshot blocks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psutil  # type: ignore[import-untyped]

from benchmarks.databases import PostgreSQL
from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import Bench, say
from benchmarks.processes import worker

STEPS = 20
SHARE = 4
"""The first and the last of so many parts are compared."""


def measure(bench: Bench) -> Iterator[Figure]:
    """The rates of one worker after the other, on tables that no vacuum has ever touched."""
    database = bench.new_postgresql("dead_rows")
    database.disable_autovacuum()
    tasks = bench.size.dead // STEPS
    rates: list[float] = []
    used: list[float] = []
    for number in range(1, STEPS + 1):
        database.add("ready", tasks)
        before = server_seconds(bench)
        rates.append(_drain(database, f"worker-{number}"))
        used.append((server_seconds(bench) - before) / tasks * 1e6)
        say(f"  {number * tasks:,}: {rates[-1]:,.0f}/s, {used[-1]:.0f} µs")
    part = STEPS // SHARE
    what = f"{bench.size.dead:,} tasks since the last vacuum"
    against = f"the first {tasks * part:,}"
    yield Figure(
        what=f"drain, one worker, {what}",
        unit="tasks/s",
        values=rates[-part:],
        against=against,
        counterparts=rates[:part],
        target=AtLeast(0.8),
    )
    yield Figure(
        what=f"server's processor time per task, {what}",
        unit="µs",
        values=used[-part:],
        against=against,
        counterparts=used[:part],
    )
    bench.drop(database)


def _drain(database: PostgreSQL, name: str) -> float:
    with worker("--drain", "--name", name, settings=database.settings) as process:
        process.output()
    return database.rate_of(name)


def server_seconds(bench: Bench) -> float:
    """Return the processor time of all sessions, those that have ended too."""
    server = psutil.Process(bench.server.pid)
    ended = server.cpu_times()
    seconds = ended.children_user + ended.children_system
    for session in server.children():
        with suppress(psutil.NoSuchProcess):
            times = session.cpu_times()
            seconds += times.user + times.system
    return float(seconds)
