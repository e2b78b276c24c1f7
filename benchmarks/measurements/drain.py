"""Draining no-op tasks, compared with the raw loop on the same tables."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from benchmarks.cpu import Sampler
from benchmarks.databases import UPDATED, PostgreSQL, Updates, updates_between
from benchmarks.figures import AtLeast, Below, Figure, Target
from benchmarks.harness import OURS, Bench, in_turn, say
from benchmarks.processes import Failed, Process, client, worker
from benchmarks.rates import until_together
from taskqueue.worker.prefetch import MAX_PER_SLOT

ROLES = {"parent": "parent", "child": "children", "server": "server"}
ROLES_OF_RAW = {"parent": "client", "server": "server"}
COUNTS = {1: "one", 2: "two"}
WORKERS_BATCH = MAX_PER_SLOT
"""Tasks that a worker with two slots claims at once: half of what it may hold."""
OWN_BATCH = f"raw loop, {WORKERS_BATCH} a batch as a worker's"
RAW = {
    "raw loop": (),
    "raw loop, least statements": ("--statements", "least"),
    OWN_BATCH: ("--joined", "--batch", WORKERS_BATCH),
}
RAW_TARGETS = {
    "raw loop": AtLeast(0.65),
    "raw loop, least statements": AtLeast(0.65),
    OWN_BATCH: None,
}
BUDGETS = {"parent": Below(35), "child": Below(30)}
"""Microseconds of processor time for each task, of this code with a process pool."""


@dataclass(frozen=True)
class Side:
    """A side of a drain: a raw loop, or workers with a pool, of this code or another commit's."""

    what: str
    processes: int
    task: str = "noop"
    revision: str = OURS

    @property
    def title(self) -> str:
        """In words."""
        if self.what in RAW:
            return f"{self.what}, {COUNTS[self.processes]}"
        plural = "s" if self.processes > 1 else ""
        return f"{COUNTS[self.processes]} worker{plural}, {self.what} pool"

    def start(self, database: PostgreSQL, number: int) -> Process:
        """One of its processes."""
        if self.what in RAW:
            return client("raw_loop", f"raw-{number}", *RAW[self.what], **database.where)
        return worker(
            "--drain", "--pool", self.what, "--name", f"worker-{number}", **database.where
        )


@dataclass(frozen=True, kw_only=True)
class Drained:
    """The figures of one drain."""

    rate: float
    wall: float
    """Tasks a second by the clock on the wall, start and end included."""
    batch: float
    microseconds: dict[str, float]
    updates: Updates


def measure(bench: Bench) -> Iterator[Figure]:
    """The rates of one and of two processes of each kind."""
    ones = [Side(what, 1) for what in RAW]
    ones += [Side(pool, 1) for pool in ("process", "thread")]
    twos = [Side(what, 2) for what in (*RAW, "process", "thread")]
    others = [
        Side("process", count, revision=revision) for revision in bench.others for count in COUNTS
    ]
    runs = in_rounds(bench, [*ones, *twos, *others])
    for side in (*ones, *twos):
        if side.what in RAW:
            yield compared(runs, side, None, None)
            continue
        for what, target in RAW_TARGETS.items():
            yield compared(runs, side, Side(what, side.processes), target)
    for side in others:
        yield compared(runs, Side("process", side.processes), side, None)
    for side in (*ones, *twos, *others):
        yield from _details(side, runs[side])


def in_rounds(bench: Bench, sides: list[Side]) -> dict[Side, list[Drained]]:
    """Each side drains once a round."""
    runs: dict[Side, list[Drained]] = defaultdict(list)
    for number in range(bench.size.rounds):
        for side in in_turn(sides, number):
            drained = until_together(partial(_drain, bench, side), say)
            runs[side].append(drained)
            revision = "" if side.revision == OURS else f" of {side.revision}"
            say(f"  round {number + 1}: {side.title}, {side.task}{revision}: {drained.rate:,.0f}/s")
    return runs


def compared(
    runs: dict[Side, list[Drained]], side: Side, against: Side | None, target: Target | None
) -> Figure:
    """The rate of one side, by that of another in the same round."""
    words = ""
    if against is not None:
        words = against.title if side.revision == against.revision else against.revision
    return Figure(
        what=f"drain, {side.title}" if side.what not in RAW else side.title,
        unit="tasks/s",
        values=[each.rate for each in runs[side]],
        against=words,
        counterparts=[each.rate for each in runs[against]] if against else (),
        target=target,
    )


def _details(side: Side, runs: list[Drained]) -> Iterator[Figure]:
    title = side.title if side.revision == OURS else f"{side.title}, {side.revision}"
    if side.what not in RAW:
        walls = [each.wall for each in runs]
        yield Figure(what=f"{title}, start and end included", unit="tasks/s", values=walls)
    batches = [each.batch for each in runs]
    yield Figure(what=f"tasks a claim, {title}", unit="tasks", values=batches)
    for role, words in (ROLES_OF_RAW if side.what in RAW else ROLES).items():
        values = [each.microseconds[role] for each in runs if role in each.microseconds]
        if values:
            what = f"processor time per task, {title}, {words}"
            is_ours = side.what == "process" and side.revision == OURS
            target = BUDGETS.get(role) if is_ours else None
            yield Figure(what=what, unit="µs", values=values, target=target)
    for table in UPDATED:
        shares = [each.updates[table][1] / max(1, each.updates[table][0]) for each in runs]
        number = sum(each.updates[table][0] for each in runs)
        what = f"share of heap-only updates of {table}s, {title}"
        yield Figure(what=what, unit=f"of {number:,}", values=shares)


def _drain(bench: Bench, side: Side) -> Drained:
    database = bench.postgresql_of(side.revision)
    database.fill("ready", bench.size.tasks, task=side.task)
    before = database.updates()
    began = time.monotonic()
    with ExitStack() as stack:
        started = [
            stack.enter_context(side.start(database, number)) for number in range(side.processes)
        ]
        sampler = Sampler([each.pid for each in started], bench.server.pid or 0)
        stack.enter_context(sampler)
        for process in started:
            process.output()
    seconds = time.monotonic() - began
    if database.succeeded() != bench.size.tasks:
        raise Failed(f"{database.succeeded()} of {bench.size.tasks} tasks succeeded ({side}).")
    return Drained(
        rate=database.rate(side.processes),
        wall=bench.size.tasks / seconds,
        batch=database.batch(),
        microseconds=sampler.microseconds(database),
        updates=updates_between(before, database.updates()),
    )
