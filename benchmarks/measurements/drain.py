"""Draining no-op tasks, beside the raw loop on the same tables."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from benchmarks.cpu import Sampler
from benchmarks.databases import PostgreSQL
from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import Bench, say
from benchmarks.processes import Failed, Process, client, worker

Start = Callable[[PostgreSQL, int], Process]


def _raw(database: PostgreSQL, number: int) -> Process:
    return client("raw_loop", f"raw-{number}", settings=database.settings)


def _worker(pool: str) -> Start:
    def start(database: PostgreSQL, number: int) -> Process:
        name = f"worker-{number}"
        return worker("--drain", "--pool", pool, "--name", name, settings=database.settings)

    return start


ROLES = {"parent": "parent", "child": "children", "server": "server"}
ROLES_OF_RAW = {"parent": "client", "server": "server"}
SIDES: dict[str, Start] = {
    "raw": _raw,
    "process": _worker("process"),
    "thread": _worker("thread"),
}


def measure(bench: Bench) -> Iterator[Figure]:
    """The rates of one and of two processes of each kind."""
    rates: dict[tuple[str, int], list[float]] = defaultdict(list)
    walls: dict[tuple[str, int], list[float]] = defaultdict(list)
    used: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(bench.size.rounds):
        for processes in (1, 2):
            for side in SIDES:
                rate, wall, microseconds = _drain(bench, side, processes)
                for role, each in microseconds.items():
                    used[side, role].append(each)
                rates[side, processes].append(rate)
                walls[side, processes].append(wall)
                say(f"  round {number + 1}: {side}, {processes}: {rate:,.0f}/s")
    for processes, name in ((1, "one"), (2, "two")):
        raw = rates["raw", processes]
        yield Figure(what=f"raw loop with leases, {name}", unit="tasks/s", values=raw)
        for pool in ("process", "thread"):
            workers = "one worker" if processes == 1 else "two workers"
            what = f"drain, {workers}, {pool} pool"
            yield Figure(
                what=what,
                unit="tasks/s",
                values=rates[pool, processes],
                against="raw loop" if processes == 1 else "two raw loops",
                counterparts=raw,
                target=AtLeast(0.65),
            )
            yield Figure(
                what=f"{what}, start and end included",
                unit="tasks/s",
                values=walls[pool, processes],
            )
    yield from _processor_time(used)


def _processor_time(used: dict[tuple[str, str], list[float]]) -> Iterator[Figure]:
    for (side, role), values in used.items():
        if side == "raw":
            what = f"processor time per task, raw loop, {ROLES_OF_RAW[role]}"
        else:
            what = f"processor time per task, one worker, {side} pool, {ROLES[role]}"
        yield Figure(what=what, unit="µs", values=values)


def _drain(bench: Bench, side: str, processes: int) -> tuple[float, float, dict[str, float]]:
    """Tasks a second by the database, and by the clock on the wall; of one also what it used."""
    database = bench.postgresql
    database.fill("ready", bench.size.tasks)
    began = time.monotonic()
    with ExitStack() as stack:
        started = [
            stack.enter_context(SIDES[side](database, number)) for number in range(processes)
        ]
        sampler = Sampler(started[0].pid, bench.server.pid or 0)
        if processes == 1:
            stack.enter_context(sampler)
        for process in started:
            process.output()
    seconds = time.monotonic() - began
    if database.succeeded() != bench.size.tasks:
        raise Failed(f"{database.succeeded()} of {bench.size.tasks} tasks succeeded ({side}).")
    microseconds = sampler.microseconds(database) if processes == 1 else {}
    return database.rate(), bench.size.tasks / seconds, microseconds
