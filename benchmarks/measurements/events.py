"""Draining and enqueuing with all events of tasks subscribed, with none, and without triggers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from benchmarks.cpu import Sampler
from benchmarks.databases import PostgreSQL
from benchmarks.figures import AtLeast, Figure, Target
from benchmarks.harness import Bench, in_turn, say
from benchmarks.measurements.sides import rate_of
from benchmarks.processes import Failed, client, worker
from benchmarks.rates import until_together

NOBODY, EVERYBODY, BARE = "nobody", "everybody", "bare"
WORDS = {
    NOBODY: "nobody subscribed", EVERYBODY: "all kinds subscribed", BARE: "without triggers",
}  # fmt: skip
WORKERS = {1: "one worker", 2: "two workers"}
# What is measured, and what all kinds subscribed are to reach of nobody subscribed.
WHAT: dict[str, tuple[str, Target | None]] = {
    **{f"drain {count}": (f"drain, {title}", AtLeast(0.8)) for count, title in WORKERS.items()},
    "one": ("enqueue one by one", None),
    "many": ("enqueue in bulk", AtLeast(0.8)),
}
# What nobody subscribed is to reach of the code without its triggers of events.
UNSUBSCRIBED = AtLeast(0.98)
EVENT_TRIGGERS = """
SELECT tgrelid::regclass::text, tgname
FROM pg_trigger
WHERE starts_with(tgname, 'taskqueue_event_')
"""
ROLES = {"parent": "parents", "child": "children", "server": "server"}
# By what was measured, the side, and for processor time the role.
Values = dict[tuple[str, ...], list[float]]


def measure(bench: Bench) -> Iterator[Figure]:
    """Each way with both sides in turn; the side that comes first changes by rounds."""
    values: Values = defaultdict(list)
    try:
        for number in range(bench.size.rounds):
            sides = in_turn(WORDS, number)
            for count in WORKERS:
                for side in sides:
                    until_together(partial(_drain, bench, side, count, values), say)
            for side in sides:
                _enqueue(bench, side, values)
            for what in WHAT:
                rates = ", ".join(f"{side} {values[what, side][-1]:,.0f}/s" for side in sides)
                say(f"  round {number + 1}: {what}: {rates}")
    finally:
        _subscribe(bench.postgresql, NOBODY)
    for what, (title, target) in WHAT.items():
        yield Figure(
            what=f"{title}, {WORDS[EVERYBODY]}",
            unit="tasks/s",
            values=values[what, EVERYBODY],
            against=WORDS[NOBODY],
            counterparts=values[what, NOBODY],
            target=target,
        )
        yield Figure(
            what=f"{title}, {WORDS[NOBODY]}",
            unit="tasks/s",
            values=values[what, NOBODY],
            against=WORDS[BARE],
            counterparts=values[what, BARE],
            target=UNSUBSCRIBED,
        )
    yield from _processor_times(values)


def _processor_times(values: Values) -> Iterator[Figure]:
    for count, title in WORKERS.items():
        for role, words in ROLES.items():
            for side, other in ((EVERYBODY, NOBODY), (NOBODY, BARE)):
                own = values[f"drain {count}", side, role]
                counterparts = values[f"drain {count}", other, role]
                if own and len(own) == len(counterparts):
                    yield Figure(
                        what=f"processor time per task, {title}, {words}, {WORDS[side]}",
                        unit="µs",
                        values=own,
                        against=WORDS[other],
                        counterparts=counterparts,
                    )
        yield Figure(
            what=f"events a task that had numbers at the end, {title}",
            unit="events",
            values=values[f"drain {count}", EVERYBODY, "numbered"],
        )


def _drain(bench: Bench, side: str, count: int, values: Values) -> None:
    """Drain tasks that were put down while nobody was subscribed: their enqueue is no part."""
    database, tasks = bench.postgresql, bench.size.tasks
    _subscribe(database, NOBODY)
    database.fill("ready", tasks)
    _subscribe(database, side)
    with ExitStack() as stack:
        started = [
            stack.enter_context(worker("--drain", "--name", f"worker-{n}", **database.where))
            for n in range(count)
        ]
        sampler = Sampler([each.pid for each in started], bench.server.pid or 0)
        stack.enter_context(sampler)
        for each in started:
            each.output()
    if database.succeeded() != tasks:
        raise Failed(f"{database.succeeded()} of {tasks} tasks succeeded ({side}).")
    what = f"drain {count}"
    values[what, side].append(database.rate(count))
    for role, microseconds in sampler.microseconds(database).items():
        values[what, side, role].append(microseconds)
    ((written, numbered),) = database.query(
        "SELECT count(*) + (SELECT COALESCE(sum(number), 0) FROM taskqueue_eventbatch), count(seq)"
        " FROM taskqueue_event WHERE kind LIKE 'task.%%'"
    )
    # Those of a start and of an end, for each task.
    if written < 2 * tasks * (side == EVERYBODY):
        raise Failed(f"{written} events of {tasks} tasks were written.")
    values[what, side, "numbered"].append(numbered / tasks)


def _enqueue(bench: Bench, side: str, values: Values) -> None:
    database, size = bench.postgresql, bench.size
    _subscribe(database, side)
    one = rate_of("enqueue_one", "enqueue", size.single_enqueues, **database.where)
    values["one", side].append(one)
    many = rate_of("enqueue_many", "enqueue", size.bulk, size.bulk_turns, **database.where)
    values["many", side].append(many)


def _subscribe(database: PostgreSQL, side: str) -> None:
    """Subscribe those of a side, and have triggers that write events, or none."""
    state = "DISABLE" if side == BARE else "ENABLE"
    for table, trigger in database.query(EVENT_TRIGGERS):
        database.query(f"ALTER TABLE {table} {state} TRIGGER {trigger}")
    with client("subscribe", side, **database.where) as process:
        process.output()
