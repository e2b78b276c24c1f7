"""Pings of workers, the changes that workers apply, and workers that were lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypedDict, Unpack
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import execute, select
from taskqueue.engine.statement import Fact, Statement, change

# A sign of life of a worker that was considered lost corrects that. The statement that delivers a
# request also marks it as seen. SQLite 3.40 finds IS NULL false for every column of a RETURNING if
# the table has JSON columns, so nullable values are returned unchanged.
TOUCH = Statement.of("""
    UPDATE taskqueue_worker
    SET seen_at = {now},
        status = %(status)s,
        running_leases = %(running_leases)s,
        trouble = %(trouble)s,
        memory_bytes = %(memory_bytes)s,
        cpu_percent = %(cpu_percent)s,
        stopped_at = NULL,
        request_seen_at = CASE
            WHEN request = '' THEN NULL
            WHEN request_seen_at IS NOT NULL THEN request_seen_at
            WHEN requested_at > {now} THEN requested_at
            ELSE {now}
        END
    WHERE id = %(worker)s AND incarnation = %(incarnation)s
    RETURNING
        request, requested_by, request_reason, is_idle,
        CAST(wanted AS text), CAST(wanted_at AS text), CAST(wanted_seen_at AS text)
""")

TAKE_UP = Statement.of("""
    UPDATE taskqueue_worker
    SET concurrency = CAST(%(concurrency)s AS integer),
        queues = {json queues},
        queue_slots = {json queue_slots},
        queue_order = {json queue_order},
        is_strict = %(is_strict)s = 'true',
        definition_slots = {json definition_slots},
        wanted_seen_at = CASE WHEN CAST(wanted_at AS text) = %(at)s THEN {now} END
    WHERE id = %(worker)s AND incarnation = %(incarnation)s
""")

# Every worker runs these: rows that another session has locked are left for a later time.
MARK_LOST = Statement.of("""
    UPDATE taskqueue_worker
    SET status = 'lost', stopped_at = {now}, is_idle = false
    WHERE id IN (
        SELECT id
        FROM taskqueue_worker
        WHERE status IN ('running', 'quiet', 'stopping') AND {since seen_at} > lease_seconds
        ORDER BY id
        {skip_locked}
    )
""")
HAS_SILENT = Fact.of("""
    EXISTS (
        SELECT 1
        FROM taskqueue_worker
        WHERE status IN ('running', 'quiet', 'stopping') AND {since seen_at} > lease_seconds
            OR status IN ('stopped', 'lost') AND {since seen_at} > 86400
    )
""")
FORGET_GONE = Statement.of("""
    DELETE FROM taskqueue_worker
    WHERE id IN (
        SELECT id
        FROM taskqueue_worker
        WHERE status IN ('stopped', 'lost')
            AND {since seen_at} > 86400
            AND NOT EXISTS (
                SELECT 1
                FROM taskqueue_lease AS lease
                WHERE lease.status = 'running' AND lease.worker_id = taskqueue_worker.name
            )
        ORDER BY id
        {skip_locked}
    )
""")

UNKNOWN = Statement.of("""
    SELECT id
    FROM taskqueue_lease
    WHERE status = 'running'
        AND worker_id = %(worker)s
        AND claimed_at >= %(since)s
        AND id {not in known bigint}
""")
REMEMBER_QUEUE = Statement.of("""
    INSERT INTO taskqueue_queue (name, created_at) VALUES (%(name)s, {now})
    ON CONFLICT (name) DO NOTHING
""")

SET_LISTENING = "UPDATE taskqueue_worker SET listens = %s WHERE id = %s"
SET_IDLE = "UPDATE taskqueue_worker SET is_idle = %s WHERE id = %s"

# The number of live workers that serve the duties before this one.
RANK = Fact.of("""
    SELECT count(*)
    FROM taskqueue_worker
    WHERE status = 'running' AND id < %(worker)s AND {since seen_at} < lease_seconds
""")


class Wanted(NamedTuple):
    """The changes that people have asked of a running worker."""

    concurrency: int | None
    queues: str | None
    strict: bool | None
    definition_slots: str | None
    # When it was last changed, as the database writes it; only for comparisons.
    at: str


class Asked(NamedTuple):
    """A request to a worker; `request` is empty if there is none."""

    request: str
    by: str
    reason: str
    # None if nothing is to change, or if the worker has applied all of it.
    wanted: Wanted | None = None
    # Whether an enqueue wakes the worker.
    is_idle: bool = False


class Terms(TypedDict):
    """The slots and queues of a worker, as columns of its row."""

    concurrency: int
    queues: Mapping[str, int]
    queue_slots: Mapping[str, int]
    queue_order: Sequence[str]
    is_strict: bool
    definition_slots: Mapping[str, int]


class Sign(TypedDict):
    """A sign of life: what a worker writes about itself."""

    status: str
    running_leases: int
    trouble: str
    memory_bytes: int | None
    # As a share of one processor.
    cpu_percent: float | None


def touch(
    connection: BaseDatabaseWrapper, *, worker_id: int, incarnation: UUID, **sign: Unpack[Sign]
) -> Asked | None:
    """Write a sign of life, and acknowledge requests to the worker.

    Return None if the name now belongs to another incarnation.
    """
    rows = select(connection, TOUCH, worker=worker_id, incarnation=incarnation, **sign)
    if not rows:
        return None
    request, by, reason, is_idle, wanted, wanted_at, taken_up_at = rows[0]
    if wanted_at is None or taken_up_at is not None:
        return Asked(request, by, reason, is_idle=bool(is_idle))
    changes = json.loads(wanted)
    parts = {name: changes.get(name) for name in Wanted._fields if name != "at"}
    return Asked(request, by, reason, Wanted(**parts, at=wanted_at), bool(is_idle))


def take_up(
    connection: BaseDatabaseWrapper, *, worker_id: int, incarnation: UUID, at: str, terms: Terms
) -> None:
    """Record how the worker behaves from now on, after the change that was made at `at`.

    A later change still waits to be applied.
    """
    execute(
        connection, TAKE_UP, worker=worker_id, incarnation=incarnation, at=at,
        **{name: json.dumps(value) for name, value in terms.items()},
    )  # fmt: skip


def set_listening(connection: BaseDatabaseWrapper, *, worker_id: int, listens: bool | None) -> None:
    """Record whether this worker listens, or polls; with None it polls until it can find out."""
    change(connection, SET_LISTENING, (listens, worker_id))


def set_idle(connection: BaseDatabaseWrapper, *, worker_id: int, is_idle: bool) -> None:
    """Record whether an enqueue has to wake this worker."""
    change(connection, SET_IDLE, (is_idle, worker_id))


def mark_lost(connection: BaseDatabaseWrapper) -> int:
    """Mark the workers that have not been seen for the duration of a lease.

    Return how many there were.
    """
    return execute(connection, MARK_LOST)


def forget_gone(connection: BaseDatabaseWrapper) -> int:
    """Delete the rows of workers that have been gone for a day. Return how many there were."""
    return execute(connection, FORGET_GONE)


def remember_queues(connection: BaseDatabaseWrapper, names: Sequence[str]) -> None:
    """Give every queue a row, so that it can be seen."""
    for name in names:
        execute(connection, REMEMBER_QUEUE, name=name)


def unknown_leases(
    connection: BaseDatabaseWrapper, *, worker: str, known: Sequence[int], since: datetime
) -> list[int]:
    """Return the running leases that this worker took since then and does not know of."""
    rows = select(connection, UNKNOWN, worker=worker, known=list(known), since=since)
    return [row[0] for row in rows]
