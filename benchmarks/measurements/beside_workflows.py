"""Ordinary tasks beside workflows, on empty tables, and with a commit from before workflows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from benchmarks.copies import copy_workflows
from benchmarks.databases import PostgreSQL
from benchmarks.figures import AtLeast, AtMost, Figure, Target
from benchmarks.harness import Bench, Size, say
from benchmarks.measurements.sides import rate_of
from benchmarks.processes import client, worker

EMPTY, BESIDE = "empty tables", "workflows"
UNCOUNTED = 1_000
"""Tasks that the client takes before the first that counts."""
WHAT: dict[str, tuple[str, str, Target]] = {
    "one": ("enqueue one by one", "tasks/s", AtLeast(0.98)),
    "many": ("enqueue in bulk", "tasks/s", AtLeast(0.98)),
    "claim": ("claim and record", "tasks/s", AtLeast(0.98)),
    "server": ("server's processor time per task", "µs", AtMost(1.02)),
    "drain": ("drain, one worker", "tasks/s", AtLeast(0.98)),
}
Rates = dict[tuple[str, str], list[float]]


def measure(bench: Bench) -> Iterator[Figure]:
    """Each way on every database in turn; all hold the same ordinary tasks at any time."""
    size = bench.size
    databases = {
        EMPTY: bench.new_postgresql("beside_nothing"),
        BESIDE: bench.new_postgresql("beside_workflows"),
    }
    _fill(databases[BESIDE], size)
    say(f"  {size.waiting_workflows:,} unfinished, {size.finished_workflows:,} finished workflows")
    databases |= {revision: bench.postgresql_of(revision) for revision in bench.others}
    bench.server.query("CHECKPOINT")
    rates: Rates = defaultdict(list)
    names = list(databases)
    # The first round brings the pages into memory, and does not count.
    for number in range(size.rounds + 1):
        for step in (_enqueue_one, _enqueue_many, _claim, _drain):
            for name in names:
                for what, value in step(databases[name], size, number).items():
                    if number:
                        rates[what, name].append(value)
                        say(f"  round {number}: {what}, {name}: {value:,.0f}")
        # Nobody is always the first.
        names.append(names.pop(0))
    beside = f"beside {size.waiting_workflows + size.finished_workflows:,} workflows"
    yield from _compared(rates, BESIDE, EMPTY, beside)
    for revision in bench.others:
        yield from _compared(rates, EMPTY, revision, EMPTY)
        yield from _compared(rates, BESIDE, revision, beside)
    for name in (EMPTY, BESIDE):
        bench.drop(databases[name])


def _compared(rates: Rates, side: str, against: str, words: str) -> Iterator[Figure]:
    for what, (title, unit, target) in WHAT.items():
        yield Figure(
            what=f"{title}, {words}",
            unit=unit,
            values=rates[what, side],
            against=against,
            counterparts=rates[what, against],
            target=target,
        )


def _fill(database: PostgreSQL, size: Size) -> None:
    """Run one workflow and enqueue another, and copy their rows."""
    for kind, count in (
        ("finished", size.finished_workflows), ("waiting", size.waiting_workflows),
    ):  # fmt: skip
        with client("enqueue_workflows", kind, 1, **database.where) as process:
            process.output()
        if kind == "finished":
            with worker("--drain", **database.where) as process:
                process.output()
        copy_workflows(database, count - 1, is_finished=kind == "finished")
    database.settle()


def _enqueue_one(database: PostgreSQL, size: Size, number: int) -> dict[str, float]:
    return {"one": rate_of("enqueue_one", "enqueue", size.single_enqueues, **database.where)}


def _enqueue_many(database: PostgreSQL, size: Size, number: int) -> dict[str, float]:
    sizes = size.bulk, size.bulk_turns
    return {"many": rate_of("enqueue_many", "enqueue", *sizes, **database.where)}


def _claim(database: PostgreSQL, size: Size, number: int) -> dict[str, float]:
    """The engine's own statements in a loop."""
    database.fill("ready", size.backlog_tasks + UNCOUNTED)
    with client("claim_and_record", size.backlog_tasks, **database.where) as process:
        rate, microseconds = process.answer()
    return {"claim": rate, "server": microseconds}


def _drain(database: PostgreSQL, size: Size, number: int) -> dict[str, float]:
    """Drain what the others have left, and as many more as a drain measures."""
    database.fill("ready", size.tasks)
    name = f"worker-{number}"
    with worker("--drain", "--name", name, **database.where) as process:
        process.output()
    return {"drain": database.rate_of(name)}
