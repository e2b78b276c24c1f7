"""Workflows, compared with the same tasks without a workflow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.cpu import Sampler
from benchmarks.databases import PostgreSQL
from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import OURS, Bench, say
from benchmarks.measurements.drain import COUNTS, ROLES
from benchmarks.measurements.sides import client_rounds
from benchmarks.processes import Failed, client, worker

WIDTH = 8
"""Members of a chord."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Tasks to drain, as members of workflows or alone."""

    kind: str
    """As `benchmarks.clients.enqueue_workflows` knows it."""
    count: int
    tasks: int
    words: str


@dataclass(frozen=True, kw_only=True)
class Drained:
    """The figures of one drain."""

    rate: float
    microseconds: dict[str, float]


def measure(bench: Bench) -> Iterator[Figure]:
    """Enqueue a group, then drain maps and chords, by one worker and by two."""
    yield _enqueued(bench)
    for processes in COUNTS:
        yield from _drained(bench, processes)


def _enqueued(bench: Bench) -> Figure:
    """A group, one transaction by one process."""
    sizes = bench.size.bulk, bench.size.bulk_turns
    rates = client_rounds(bench, "enqueue_many", ("enqueue", "group"), *sizes).rates
    return Figure(
        what=f"enqueue a group of {bench.size.bulk:,}",
        unit="tasks/s",
        values=rates[OURS, "group"],
        against="the same tasks in bulk",
        counterparts=rates[OURS, "enqueue"],
        target=AtLeast(0.5),
    )


def _drained(bench: Bench, processes: int) -> Iterator[Figure]:
    """Each kind once a round, and as many tasks alone in the same round."""
    members = bench.size.bulk
    chords = members // WIDTH
    targets = {
        Work(
            kind="map", count=members, tasks=members + 1, words=f"a map of {members:,}"
        ): AtLeast(0.75),
        Work(
            kind="released", count=members, tasks=members + 2,
            words=f"a map of {members:,} behind a step",
        ): None,
        Work(
            kind="chords", count=chords, tasks=chords * (WIDTH + 1),
            words=f"{chords:,} chords of {WIDTH}",
        ): AtLeast(0.6),
    }  # fmt: skip
    runs: dict[tuple[Work, str], list[Drained]] = defaultdict(list)
    for number in range(bench.size.rounds):
        for work in targets:
            alone = Work(kind="alone", count=work.tasks, tasks=work.tasks, words="")
            for side in (work, alone):
                drained = _drain(bench, side, processes)
                runs[work, side.kind].append(drained)
                say(f"  round {number + 1}: {work.words}, {side.kind}: {drained.rate:,.0f}/s")
    plural = "s" if processes > 1 else ""
    for work, target in targets.items():
        what = f"{work.words}, {COUNTS[processes]} worker{plural}"
        yield Figure(
            what=what,
            unit="tasks/s",
            values=[each.rate for each in runs[work, work.kind]],
            against="the same tasks alone",
            counterparts=[each.rate for each in runs[work, "alone"]],
            target=target,
        )
        yield from _processor_times(what, runs[work, work.kind], runs[work, "alone"])


def _processor_times(what: str, own: list[Drained], alone: list[Drained]) -> Iterator[Figure]:
    for role, words in ROLES.items():
        pairs = [
            (one.microseconds[role], other.microseconds[role])
            for one, other in zip(own, alone, strict=True)
            if role in one.microseconds and role in other.microseconds
        ]
        if pairs:
            yield Figure(
                what=f"processor time per task, {what}, {words}",
                unit="µs",
                values=[pair[0] for pair in pairs],
                against="the same tasks alone",
                counterparts=[pair[1] for pair in pairs],
            )


def _drain(bench: Bench, work: Work, processes: int) -> Drained:
    """From the first claim to the last end, what follows the members included."""
    database = bench.postgresql
    with client("enqueue_workflows", work.kind, work.count, **database.where) as process:
        process.output()
    database.settle()
    with ExitStack() as stack:
        started = [
            stack.enter_context(worker("--drain", "--name", f"worker-{n}", **database.where))
            for n in range(processes)
        ]
        sampler = Sampler([each.pid for each in started], bench.server.pid or 0)
        stack.enter_context(sampler)
        for each in started:
            each.output()
    _check(database, work)
    began, ended = database.worked()
    return Drained(rate=work.tasks / (ended - began), microseconds=sampler.microseconds(database))


def _check(database: PostgreSQL, work: Work) -> None:
    if database.succeeded() != work.tasks:
        raise Failed(f"{database.succeeded()} of {work.tasks} tasks succeeded ({work}).")
    unfinished = database.query(
        "SELECT count(*) FROM taskqueue_workflow WHERE status <> 'succeeded'"
    )
    if unfinished[0][0]:
        raise Failed(f"{unfinished[0][0]} workflows did not succeed ({work}).")
