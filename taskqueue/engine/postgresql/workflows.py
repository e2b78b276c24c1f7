"""Counting the ends of steps, and inserting their tasks, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from struct import Struct
from typing import Any, cast

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.payloads import ID_BYTES, OWN_COLUMNS
from taskqueue.engine.postgresql.arrivals import begin_bulk, end_bulk
from taskqueue.engine.postgresql.copying import (
    COPY_BEGINS,
    COPY_ENDS,
    HEAD,
    JSONB_VERSION,
    LENGTH,
    SHARED_COLUMNS,
    binary,
)
from taskqueue.engine.postgresql.values import numbers
from taskqueue.engine.rows import Folded, StepTasks
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan
from taskqueue.engine.specs import CLAIM_COLUMNS, LIMIT_COLUMNS, PLAIN_COLUMNS, EnqueueSpec
from taskqueue.engine.statement import change, fetch
from taskqueue.models.task import Route

# Locks: steps by id, skipping locked ones, then the notes of these steps that existed before. Notes
# that are written meanwhile are left to the next fold. Counts start from the row as it was when it
# was locked. Notes that do more than count are left to the advance, which the result asks for; for
# a step that has ended they have no effect.
#
# The server keeps the plan: joins by `= ANY (ARRAY[key])` leave it nothing but the key, whereas a
# condition that can be hashed, such as an EXISTS, might one day read all notes.
FOLD = f"""
WITH clock AS MATERIALIZED (
    SELECT 1 WHERE {KEEPS_PLAN}
), locked AS MATERIALIZED (
    SELECT id, workflow_id, status = 'running' AS is_running, members - ended AS lacking
    FROM clock
    CROSS JOIN taskqueue_step AS step
    WHERE id = ANY (%(steps)s::bigint[])
    ORDER BY id
    FOR UPDATE OF step SKIP LOCKED
), taken AS (
    DELETE FROM taskqueue_stepend AS note
    USING locked
    WHERE note.workflow_id = ANY (ARRAY[locked.workflow_id])
        AND note.step_id = ANY (ARRAY[locked.id])
        AND NOT (locked.is_running AND (note.updates IS NOT NULL OR note.has_fan))
    RETURNING note.step_id, note.status, note.number
), sums AS (
    SELECT
        step_id, sum(number)::int AS ended,
        sum(CASE WHEN status = 'succeeded' THEN 0 ELSE number END)::int AS failures
    FROM taken
    GROUP BY step_id
), moved AS (
    UPDATE taskqueue_step AS step
    SET ended = step.ended + sums.ended,
        failures = step.failures + sums.failures,
        counted_at = clock_timestamp(),
        is_due = step.is_due OR step.status = 'running' AND (
            step.ended + sums.ended >= step.members
            OR step.released - step.held < step.members
            OR step.failures + sums.failures > step.tolerated
        )
    FROM sums
    WHERE step.id = ANY (ARRAY[sums.step_id])
    RETURNING step.id, step.is_due, step.members - step.ended AS lacking
)
SELECT
    locked.id, locked.workflow_id::text,
    COALESCE(moved.is_due, false) OR locked.is_running AND (
        SELECT true
        FROM taskqueue_stepend AS note
        WHERE note.workflow_id = locked.workflow_id AND note.step_id = locked.id
            AND (note.updates IS NOT NULL OR note.has_fan)
        LIMIT 1
    ) IS NOT NULL,
    COALESCE(moved.lacking, locked.lacking, 0)
FROM locked
LEFT JOIN moved ON moved.id = locked.id
"""  # noqa: S608  (of constants)

_SHARED = tuple(
    column
    for column in (*PLAIN_COLUMNS, *LIMIT_COLUMNS, *CLAIM_COLUMNS)
    if column not in OWN_COLUMNS
)
_VALUES = {column: f"%({column})s" for column in _SHARED} | {
    "route": f"CASE WHEN row.partition IS NULL THEN %(route)s ELSE {Route.PARTITION.value} END"
}
# Locks: the keys of members, which no other session inserts, because the caller holds the workflow.
INSERT_TASKS = f"""
WITH inserted AS (
    INSERT INTO taskqueue_task (
        id, args, kwargs, step_id, place, partition, limits, {", ".join(_SHARED)}
    )
    SELECT
        row.id, row.args::jsonb, row.kwargs::jsonb, row.step_id, row.place, row.partition,
        row.limits::jsonb, {", ".join(_VALUES.values())}
    FROM unnest(
        %(ids)s::uuid[], %(arguments)s::text[], %(keywords)s::text[], %(steps)s::bigint[],
        %(places)s::int[], %(partitions)s::uuid[], %(limits)s::text[]
    ) AS row (id, args, kwargs, step_id, place, partition, limits)
    RETURNING id, step_id, place
), counted AS (
    INSERT INTO taskqueue_arrival (id, queue_name, name, number)
    SELECT 0, %(queue_name)s, %(name)s, count(*)
    FROM inserted
)
INSERT INTO taskqueue_member (step_id, place, task_id)
SELECT step_id, place, id
FROM inserted
"""  # noqa: S608  (the columns are constants)

# Its arrays, in the order of the fields of `StepTasks`.
ARRAYS = ("ids", "arguments", "keywords", "steps", "places", "partitions", "limits")

# From this number on by a binary COPY, as in `postgresql.copying`; this many batches by one
# statement, which then takes some tenths of a second.
FEWEST_COPIED, MOST_BATCHES = 50, 40
COPY_TASKS = f"""
COPY taskqueue_task ({", ".join((*OWN_COLUMNS, "step_id", "place", *SHARED_COLUMNS))})
FROM STDIN (FORMAT binary)
"""
COPY_MEMBERS = "COPY taskqueue_member (step_id, place, task_id) FROM STDIN (FORMAT binary)"
COPIED = len(OWN_COLUMNS) + 2 + len(SHARED_COLUMNS)
# The id of a step and a place; for a member, the number of its columns, these two, and its task.
PLACE, MEMBER = Struct("!iqii"), Struct("!hiqiii16s")


def fold(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> list[Folded]:
    """Count the notes of these steps. Return the steps, without those that others have locked."""
    with kept_plan(connection) as series:
        rows = fetch(connection, FOLD, {"steps": numbers(step_ids), "series": series})
    return [Folded(*row) for row in rows]


def insert_step_tasks(
    connection: BaseDatabaseWrapper,
    spec: EnqueueSpec,
    batches: Iterable[StepTasks],
    *,
    now: datetime,
    changes: Mapping[str, Any],
) -> None:
    """Insert tasks of steps, all with the same options, and their members."""
    shared = {**spec.columns_at(now), **changes}
    is_plain = shared["route"] == Route.ORDINARY and not spec.limit_plan
    rest = iter(batches)
    first = next(rest, None)
    if first is None:
        return
    if len(first.ids) >= FEWEST_COPIED and is_plain:
        _copy(connection, spec, chain([first], rest), shared)
        return
    for tasks in chain([first], rest):
        arrays = dict(zip(ARRAYS, map(list, tasks), strict=True))
        change(connection, INSERT_TASKS, {**shared, **arrays})


def _copy(
    connection: BaseDatabaseWrapper,
    spec: EnqueueSpec,
    batches: Iterable[StepTasks],
    shared: Mapping[str, Any],
) -> None:
    """Insert many tasks that any worker may run; twice as fast as an INSERT from arrays."""
    number = 0
    bulk = begin_bulk(connection, FEWEST_COPIED)
    inserted: list[tuple[int, list[str]]] = []
    if bulk.publishes:
        batches = _noted(batches, inserted)
    rest = iter(batches)
    with connection.cursor() as cursor:
        tail = binary(shared, cast(Any, cursor).connection.info.encoding)
        while (first := next(rest, None)) is not None:
            some = chain([first], islice(rest, MOST_BATCHES - 1))
            number += _copy_some(connection, cursor, some, tail)
    end_bulk(
        connection, bulk,
        queue_name=spec.queue_name, name=spec.name, status=shared["status"], number=number,
        tasks=inserted, announced=None,
    )  # fmt: skip


def _noted(
    batches: Iterable[StepTasks], inserted: list[tuple[int, list[str]]]
) -> Iterator[StepTasks]:
    """Yield the batches, and record their steps with the ids of the tasks."""
    for tasks in batches:
        pairs = zip(tasks.step_ids, tasks.ids, strict=True)
        for step_id, own in groupby(pairs, key=itemgetter(0)):
            inserted.append((step_id, [id for _, id in own]))
        yield tasks


def _copy_some(
    connection: BaseDatabaseWrapper, cursor: Any, batches: Iterable[StepTasks], tail: bytes
) -> int:
    """Copy batches of tasks, then their members. Return how many tasks there were.

    The server reads one batch while the next is made.
    """
    number = 0
    members = bytearray(COPY_BEGINS)
    # Django's wrapper passes unknown attributes to psycopg's cursor, and does not wrap its errors.
    with connection.wrap_database_errors, cursor.copy(COPY_TASKS) as copy:
        copy.write(COPY_BEGINS)
        for tasks in batches:
            rows, own = _rows(tasks, tail)
            copy.write(rows)
            members += own
            number += len(tasks.ids)
        copy.write(COPY_ENDS)
    with connection.wrap_database_errors, cursor.copy(COPY_MEMBERS) as copy:
        copy.write(members + COPY_ENDS)
    return number


def _rows(tasks: StepTasks, tail: bytes) -> tuple[bytes, bytes]:
    """Return rows of tasks and members for a binary COPY, made by columns as in `column_rows`."""
    ids, step_ids, places = list(map(bytes.fromhex, tasks.ids)), tasks.step_ids, tasks.places
    args = [text.encode("ascii") for text in tasks.args]
    lengths = [len(text) + 1 for text in args]
    # Most tasks have none, or the same.
    keywords = {
        text: LENGTH.pack(len(text) + 1, JSONB_VERSION) + text.encode("ascii")
        for text in set(tasks.kwargs)
    }
    numbers, sizes, versions = repeat(COPIED), repeat(ID_BYTES), repeat(JSONB_VERSION)
    heads = map(HEAD.pack, numbers, sizes, ids, lengths, versions)
    rests = [keywords[text] for text in tasks.kwargs]
    at = map(PLACE.pack, repeat(8), step_ids, repeat(4), places)
    rows = zip(heads, args, rests, at, repeat(tail))
    members = map(MEMBER.pack, repeat(3), repeat(8), step_ids, repeat(4), places, sizes, ids)
    return b"".join(chain.from_iterable(rows)), b"".join(members)
