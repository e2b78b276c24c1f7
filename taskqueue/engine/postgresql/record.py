"""Recording outcomes on PostgreSQL: fenced by the lease, in single statements."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.event_kinds import EventKind
from taskqueue.core.outcomes import EFFECTS, SUCCESS, Outcome, Recorded, success_of
from taskqueue.engine.postgresql.events import PUBLISH_SUCCEEDED, published_by_statement
from taskqueue.engine.postgresql.values import microseconds, numbers, texts
from taskqueue.engine.retention import KEEPS_KEY, PRUNE_AFTER, EndPolicy
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan
from taskqueue.engine.statement import fetch

# A CHECK constraint ensures that a lease is running as long as it has no `finished_at`. These
# statements test that instead of the status: while the statistics say that few leases are running,
# PostgreSQL would read the partial index of all running leases for each outcome.
#
# Each lease is found by LATERAL with a LIMIT, which PostgreSQL cannot turn into a join over the
# whole table, whatever the statistics say. The condition of the JOIN is redundant, but keeps the
# estimate of `held` small, so that rows joined to it are found by key too.
#
# With `= ANY (ARRAY[...])` PostgreSQL can neither sort nor hash, so the order of an index is of no
# use: a lookup by key for each row is the only plan left, also in plans that the server keeps, and
# behind a pooler, where a session cannot forbid other plans.
#
# Locks: leases by id, then their tasks. A lease that is no longer running, or whose stop was seen,
# drops out of `held`, and with it everything that its attempt would have written.
PRUNE_SUCCEEDED = PRUNE_AFTER.format(
    finished_at="held.finished_at", kept_for="%(kept_for)s::interval"
)
# A record of successes consists of these parts, in this order.
ENDED = f"""
WITH held AS MATERIALIZED (
    SELECT
        lease.id, lease.task_id, outcome.return_value, lease.worker_id,
        lease.started_at AS noted_at,
        clock.now - outcome.started * interval '1 microsecond' AS started_at,
        clock.now - outcome.ended * interval '1 microsecond' AS finished_at
    FROM (
        SELECT *
        FROM unnest(
            %(lease_id)s::bigint[], %(return_value)s::text[],
            %(started)s::bigint[], %(ended)s::bigint[]
        ) AS outcome (lease_id, return_value, started, ended)
        ORDER BY lease_id
    ) AS outcome
    JOIN LATERAL (
        SELECT id, task_id, worker_id, started_at
        FROM taskqueue_lease
        WHERE id = outcome.lease_id
            AND finished_at IS NULL AND stop_seen_at IS NULL AND NOT is_shared
        LIMIT 1
        FOR UPDATE
    ) AS lease ON lease.id = outcome.lease_id
    CROSS JOIN (SELECT clock_timestamp() AS now WHERE {KEEPS_PLAN}) AS clock
), ended AS (
    UPDATE taskqueue_lease AS lease
    SET status = 'succeeded',
        started_at = COALESCE(lease.started_at, held.started_at),
        finished_at = held.finished_at,
        progress = CASE WHEN lease.progress IS NOT NULL THEN 100 END,
        is_limited = lease.is_limited AND lease.id <> ALL (%(passing)s::bigint[])
    FROM held
    WHERE lease.id = ANY (ARRAY[held.id])
)
"""  # noqa: S608  (of constants)
SUCCEEDED = f"""\
UPDATE taskqueue_task AS task
SET status = 'succeeded',
    return_value = held.return_value::jsonb,
    started_at = COALESCE(task.started_at, held.started_at),
    finished_at = held.finished_at,
    prune_after = {PRUNE_SUCCEEDED},
    holds_unique_key = {KEEPS_KEY}
FROM held
WHERE task.id = ANY (ARRAY[held.task_id]) AND task.status = 'running'
"""  # noqa: S608  (of constants)
_RETURNED = """\
RETURNING held.id, task.step_id
"""
_EVENTS = f"""\
RETURNING
    held.id AS lease_id, held.worker_id, task.id, task.name, task.queue_name, task.attempt,
    task.step_id, held.finished_at - COALESCE(held.noted_at, held.started_at) AS ran
), published AS ({PUBLISH_SUCCEEDED})
SELECT lease_id, step_id
FROM done
"""  # noqa: S608  (of constants)

RECORD_SUCCESSES = ENDED + SUCCEEDED + _RETURNED
# The record that also writes the events of the successes.
RECORD_WITH_EVENTS = ENDED + ", done AS (\n" + SUCCEEDED + _EVENTS

PRUNE_ENDED = PRUNE_AFTER.format(
    finished_at="clock_timestamp()",
    kept_for="""CASE verdict.status
                WHEN 'failed' THEN %(keep_failed)s::interval ELSE %(keep_cancelled)s::interval
            END""",
)
# Locks: leases by id, then their tasks by id. Decides under these locks whether attempts remain. A
# body that never began may be noted as running, because its order had been sent: that is undone.
# `effect` is a row of the table of outcomes, which is passed as a parameter; a join with that table
# could become a loop over all of it for each outcome.
RECORD_ENDINGS = f"""
WITH held AS MATERIALIZED (
    SELECT
        lease.id, lease.task_id, lease.started_at, lease.stop_requested_at IS NOT NULL AS stopping,
        outcome.kind, outcome.error_class, outcome.traceback,
        COALESCE(NULLIF(outcome.error_message, ''), lease.stop_reason) AS error_message,
        outcome.delay, outcome.retryable,
        clock.now - outcome.started * interval '1 second' AS body_started_at,
        clock.now - outcome.ended * interval '1 second' AS finished_at
    FROM (
        SELECT *
        FROM unnest(
            %(lease_id)s::bigint[], %(kind)s::text[], %(error_class)s::text[],
            %(error_message)s::text[], %(traceback)s::text[], %(delay)s::float8[],
            %(retryable)s::bool[], %(started)s::float8[], %(ended)s::float8[]
        ) AS outcome (
            lease_id, kind, error_class, error_message, traceback, delay, retryable, started, ended
        )
        ORDER BY lease_id
    ) AS outcome
    JOIN LATERAL (
        SELECT id, task_id, started_at, stop_requested_at, stop_reason
        FROM taskqueue_lease
        WHERE id = outcome.lease_id AND finished_at IS NULL AND NOT is_shared
        LIMIT 1
        FOR UPDATE
    ) AS lease ON lease.id = outcome.lease_id
    CROSS JOIN (SELECT clock_timestamp() AS now) AS clock
), locked AS MATERIALIZED (
    SELECT
        held.*, task.failures, task.max_attempts, task.crashes, task.max_crashes,
        task.parked_at, task.crash_delay
    FROM (SELECT * FROM held ORDER BY task_id) AS held
    JOIN LATERAL (
        SELECT id, failures, max_attempts, crashes, max_crashes, parked_at, crash_delay
        FROM taskqueue_task
        WHERE id = held.task_id
        LIMIT 1
        FOR UPDATE
    ) AS task ON task.id = held.task_id
), verdict AS MATERIALIZED (
    SELECT
        locked.*, effect.counts_as, effect.limited_by,
        CASE
            WHEN stopping THEN 'cancelled'
            WHEN CASE limited_by
                WHEN 'max_attempts' THEN NOT retryable OR failures + 1 >= max_attempts
                WHEN 'max_crashes' THEN crashes + 1 >= max_crashes
                WHEN 'park_limit' THEN
                    COALESCE(parked_at, statement_timestamp())
                        <= statement_timestamp() - %(park_limit)s::interval
            END THEN 'failed'
            ELSE effect.task_status
        END AS status,
        CASE
            WHEN stopping AND effect.lease_status IS DISTINCT FROM 'lost' THEN 'stopped'
            ELSE effect.lease_status
        END AS lease_status
    FROM locked
    CROSS JOIN LATERAL jsonb_to_record(%(effects)s::jsonb -> locked.kind)
        AS effect (lease_status text, task_status text, limited_by text, counts_as text)
), withdrawn AS (
    DELETE FROM taskqueue_lease AS lease
    USING verdict
    WHERE lease.id = ANY (ARRAY[verdict.id]) AND verdict.lease_status IS NULL
), ended AS (
    UPDATE taskqueue_lease AS lease
    SET status = verdict.lease_status,
        started_at = CASE
            WHEN verdict.body_started_at IS NOT NULL
            THEN COALESCE(lease.started_at, verdict.body_started_at)
        END,
        finished_at = verdict.finished_at,
        error_class = verdict.error_class,
        error_message = verdict.error_message,
        traceback = verdict.traceback
    FROM verdict
    WHERE lease.id = ANY (ARRAY[verdict.id]) AND verdict.lease_status IS NOT NULL
)
UPDATE taskqueue_task AS task
SET status = verdict.status,
    attempt = task.attempt - (verdict.lease_status IS NULL)::int,
    failures = task.failures + (verdict.counts_as = 'failure')::int,
    crashes = task.crashes + (verdict.counts_as = 'crash')::int,
    run_after = CASE
        WHEN verdict.status IN ('retrying', 'scheduled') THEN clock_timestamp() + CASE
            WHEN verdict.counts_as = 'crash' THEN verdict.crash_delay
            ELSE verdict.delay * interval '1 second'
        END
        ELSE task.run_after
    END,
    ready_at = CASE WHEN verdict.status = 'ready' THEN clock_timestamp() ELSE task.ready_at END,
    parked_at = CASE
        WHEN verdict.limited_by = 'park_limit' THEN COALESCE(task.parked_at, clock_timestamp())
        WHEN verdict.lease_status IS NULL THEN task.parked_at
    END,
    started_at = CASE
        WHEN verdict.body_started_at IS NULL THEN NULLIF(task.started_at, verdict.started_at)
        ELSE COALESCE(task.started_at, verdict.started_at, verdict.body_started_at)
    END,
    error_class = CASE
        WHEN verdict.status IN ('failed', 'cancelled') THEN verdict.error_class ELSE ''
    END,
    error_message = CASE
        WHEN verdict.status IN ('failed', 'cancelled') THEN verdict.error_message ELSE ''
    END,
    finished_at = CASE
        WHEN verdict.status IN ('failed', 'cancelled') THEN clock_timestamp()
    END,
    prune_after = CASE WHEN verdict.status IN ('failed', 'cancelled') THEN {PRUNE_ENDED} END,
    holds_unique_key = task.holds_unique_key AND (
        verdict.status NOT IN ('failed', 'cancelled') OR {KEEPS_KEY}
    )
FROM verdict
WHERE task.id = ANY (ARRAY[verdict.task_id]) AND task.status = 'running'
RETURNING verdict.id, verdict.status, verdict.lease_status, task.step_id
"""  # noqa: S608  (of constants)

EFFECTS_JSON = json.dumps({kind: effect._asdict() for kind, effect in EFFECTS.items()})


def record_successes(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    kept_for: timedelta | None,
    passing: Collection[int] = (),
) -> dict[int, Recorded]:
    """Record successes of leases that still run and whose stop was not seen.

    Return records by lease. The places of the leases `passing` are left to the caller.
    """
    parameters = successes_parameters(outcomes, kept_for, passing)
    with (
        published_by_statement(connection, EventKind.TASK_SUCCEEDED, len(outcomes)) as publishes,
        kept_plan(connection) as series,
    ):
        statement = RECORD_WITH_EVENTS if publishes else RECORD_SUCCESSES
        rows = fetch(connection, statement, parameters | {"series": series})
    return {
        lease_id: SUCCESS if step_id is None else success_of(step_id) for lease_id, step_id in rows
    }


def successes_parameters(
    outcomes: Sequence[Outcome], kept_for: timedelta | None, passing: Collection[int]
) -> dict[str, Any]:
    """Return the parameters of a statement that records successes."""
    lease_ids, _, ended, started, return_values = list(zip(*outcomes, strict=True))[:5]
    return {
        "lease_id": numbers(lease_ids),
        "return_value": texts(return_values),
        "started": microseconds(started),
        "ended": microseconds(ended),
        "kept_for": kept_for,
        "passing": numbers(list(passing)),
    }


def record_endings(
    connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome], policy: EndPolicy
) -> dict[int, Recorded]:
    """Record every other outcome whose lease still runs. Return records by lease."""
    parameters = {name: list(values) for name, values in _columns(outcomes).items()}
    parameters["kind"] = list(map(str, parameters["kind"]))
    parameters |= policy._asdict() | {"effects": EFFECTS_JSON}
    rows = fetch(connection, RECORD_ENDINGS, parameters)
    return {row[0]: Recorded(*row[1:]) for row in rows}


def _columns(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return dict(zip(Outcome._fields, zip(*outcomes, strict=True), strict=True))
