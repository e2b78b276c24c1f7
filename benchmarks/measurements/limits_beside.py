"""The cost of limited tasks for other tasks: with a full key, and with many open keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from benchmarks.databases import PostgreSQL
from benchmarks.figures import AtLeast, AtMost, Figure
from benchmarks.harness import Bench, say
from benchmarks.processes import Failed, client, worker

FEW, MANY = 1, 10_000
"""Open keys."""
CLAIMS, BATCH = 300, 16
COLUMNS = "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute WHERE attnum > 0"
HOLD = "UPDATE taskqueue_limit SET concurrency_override = 0"


def measure(bench: Bench) -> Iterator[Figure]:
    """Ordinary tasks beside very many that wait, then claims with one and with many open keys."""
    yield from _beside_full_key(bench)
    yield from _open_keys(bench)


def _beside_full_key(bench: Bench) -> Iterator[Figure]:
    size = bench.size
    sides = {name: bench.new_postgresql(f"limits_{name}") for name in ("empty", "full_key")}
    _fill_key(sides["full_key"], size.backlog)
    say(f"  {size.backlog:,} wait for a key")
    bench.server.query("CHECKPOINT")
    rates: dict[str, list[float]] = defaultdict(list)
    # The first round brings the pages into memory, and does not count.
    for number in range(size.rounds + 1):
        for name, database in sorted(sides.items(), reverse=bool(number % 2)):
            database.fill("ready", size.tasks)
            with worker("--drain", "--name", f"worker-{number}", **database.where) as process:
                process.output()
            if number:
                rates[name].append(database.rate_of(f"worker-{number}"))
                say(f"  round {number}: {name}: {rates[name][-1]:,.0f}/s")
    yield Figure(
        what=f"drain, one worker, beside {size.backlog:,} that wait for a full key",
        unit="tasks/s",
        values=rates["full_key"],
        against="without them",
        counterparts=rates["empty"],
        target=AtLeast(0.95),
    )
    for database in sides.values():
        bench.drop(database)


def _fill_key(database: PostgreSQL, count: int) -> None:
    """Have a worker find the key full, and copy the task that waits."""
    with client("enqueue_keys", "held", 1, 1, **database.where) as process:
        process.output()
    # As the trigger of an enqueue notes it, so the sweep finds nothing to repair.
    _drain(database)
    database.query(HOLD)
    with client("enqueue_keys", "held", 1, 1, **database.where) as process:
        process.output()
    _drain(database)
    waits = "SELECT count(*) FROM taskqueue_partition WHERE waits_for IS NOT NULL"
    if database.query(waits) != [(1,)]:
        raise Failed("No partition waits for the key.")
    columns = database.query(
        f"{COLUMNS} AND attrelid = 'taskqueue_task'::regclass AND NOT attisdropped"
        " AND attname <> 'id' AND attgenerated = ''"
    )[0][0]
    database.query("ALTER TABLE taskqueue_task DISABLE TRIGGER taskqueue_note_new")
    for start in range(0, count, 250_000):
        database.query(
            f"INSERT INTO taskqueue_task (id, {columns}) SELECT uuidv7(), {columns}"
            " FROM (SELECT * FROM taskqueue_task WHERE status = 'ready' LIMIT 1) AS task,"
            " generate_series(1, %s)",
            (min(250_000, count - start),),
        )
    database.query("ALTER TABLE taskqueue_task ENABLE TRIGGER taskqueue_note_new")
    database.settle()


def _drain(database: PostgreSQL) -> None:
    with worker("--drain", "--name", "before", **database.where) as process:
        process.output()


def _open_keys(bench: Bench) -> Iterator[Figure]:
    claims = CLAIMS if bench.size.rounds > 1 else CLAIMS // 3
    used: dict[tuple[str, int], list[float]] = defaultdict(list)
    for number in range(bench.size.rounds):
        for keys in (FEW, MANY) if number % 2 else (MANY, FEW):
            # A database of its own each time: what earlier claims have left makes claims slower.
            database = bench.new_postgresql(f"limits_keys_{keys}")
            count = max(2 * keys, (claims + 20) * BATCH)
            with client("enqueue_keys", "wide", count, keys, **database.where) as process:
                process.output()
            database.settle()
            with client("claim_limited", claims, BATCH, **database.where) as process:
                wall, server = process.answer()
            used["wall", keys].append(wall)
            used["server", keys].append(server)
            say(f"  round {number + 1}: {keys:,} open keys: {wall:.2f} ms, server {server:.2f} ms")
            bench.drop(database)
    for what, words in (("wall", "time"), ("server", "server's processor time")):
        yield Figure(
            what=f"{words} of a claim of {BATCH} with {MANY:,} open keys",
            unit="ms",
            values=used[what, MANY],
            against=f"with {FEW}",
            counterparts=used[what, FEW],
            target=AtMost(1.5),
        )
