"""Pass places on: the next task takes the places of one that has ended; no count changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.limit_rows import PassingTerms
from taskqueue.engine.postgresql.claim import CLAIMED
from taskqueue.engine.postgresql.limit_lock import bare
from taskqueue.engine.postgresql.limit_tasks import IS_KNOWN, MAY_START
from taskqueue.engine.postgresql.values import numbers, texts, words
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan
from taskqueue.engine.statement import fetch

# These leases were recorded in the same transaction, and still hold their places. The places of
# each pass to the next task of the same partition. The number of taken places stays the same, so
# only the tasks must be locked: a session that counts under the lock of a limiter sees either the
# old lease or the new one.
#
# Places do not pass on if another partition waits for one of the limiters, if its limit allows
# fewer now (places that other partitions' leases leave here count too, because they may also pass
# on), or if the queue is limited or paused. If a partition may be open or an ordinary task is
# ready, only as many pass on as the caller says. The other places are freed with a note, as the
# trigger at the end of a lease does.
#
# The partition's row does not change. It is the only one that waits for a limiter, so its position
# among others does not matter, and the end of the last of these leases opens it.
#
# Locks: ready tasks in claim order, skipping locked ones. The leases, and with them their places,
# are locked already.
#
# The parts in double braces differ if the same statement records the leases: see
# `limit_pass_at_once`.
PASSING = f"""\
other AS MATERIALIZED (
    SELECT
        EXISTS (SELECT 1 FROM taskqueue_limitnote)
        OR EXISTS (SELECT 1 FROM taskqueue_partition WHERE opens_at <= statement_timestamp())
        OR EXISTS (SELECT 1 FROM taskqueue_partition WHERE state = 'open') AS has_news,
        EXISTS (SELECT 1 FROM taskqueue_task WHERE status = 'ready' AND route = 0)
        OR EXISTS (
            SELECT 1 FROM taskqueue_task WHERE status IN ('ready', 'running') AND route = 1
        ) AS has_others
), given AS MATERIALIZED (
    SELECT
        ended.lease_id, ended.partition, place.number AS places,
        row_number() OVER (PARTITION BY ended.partition ORDER BY ended.lease_id) AS turn,
        row_number() OVER () AS number
    FROM unnest(%(passing)s::bigint[], %(partitions)s::uuid[]) AS ended (lease_id, partition)
    {{ended}}
    CROSS JOIN LATERAL (
        SELECT count(*) AS number FROM taskqueue_slot WHERE lease_id = ended.lease_id
    ) AS place
), asked AS MATERIALIZED (
    SELECT
        partition AS id, min(places) AS least, max(places) AS most,
        array_agg(given.lease_id) AS leases,
        count(*) FILTER (
            WHERE given.number <= %(most)s OR NOT (other.has_news OR other.has_others)
        ) AS number
    FROM given
    CROSS JOIN other
    GROUP BY partition
), open AS MATERIALIZED (
    SELECT asked.id, LEAST(asked.number, bound.left_over) AS number
    FROM asked
    CROSS JOIN LATERAL (
        SELECT limiters, queue_name, waits_for
        FROM taskqueue_partition
        WHERE id = asked.id AND waits_for IS NOT NULL
        LIMIT 1
    ) AS own
    CROSS JOIN LATERAL (
        SELECT
            count(*) AS number,
            min(COALESCE(named.concurrency_override, named.concurrency) - running.number)
                AS left_over
        FROM jsonb_array_elements_text(own.limiters) AS wanted (id)
        CROSS JOIN LATERAL (
            SELECT id, limit_id FROM taskqueue_limiter WHERE id = wanted.id::uuid LIMIT 1
        ) AS limiter
        JOIN taskqueue_limit AS named ON named.id = ANY (ARRAY[limiter.limit_id])
        CROSS JOIN LATERAL (
            SELECT count(*) AS number
            FROM taskqueue_slot AS slot
            CROSS JOIN LATERAL (
                SELECT 1
                FROM taskqueue_lease
                WHERE id = slot.lease_id AND {{is_taken}}
                LIMIT 1
            ) AS lease
            WHERE slot.limiter_id = limiter.id
        ) AS running
        WHERE COALESCE(named.rate_override, named.rate) IS NULL
            AND (own.waits_for = limiter.id)::int = (
                SELECT count(*)
                FROM (
                    SELECT 1 FROM taskqueue_partition WHERE waits_for = limiter.id LIMIT 2
                ) AS waiting
            )
    ) AS bound
    CROSS JOIN clock
    WHERE {{is_new}}
        AND asked.least = asked.most
        AND asked.most = jsonb_array_length(own.limiters)
        AND bound.number = asked.most
        AND own.queue_name = ANY (%(served)s::text[])
        AND own.queue_name <> ALL (ARRAY(
            SELECT name
            FROM taskqueue_queue
            WHERE limiter_id IS NOT NULL OR paused_at IS NOT NULL
                AND (paused_until IS NULL OR paused_until > clock_timestamp())
        ))
), picked AS MATERIALIZED (
    SELECT open.id AS partition, task.id
    FROM open
    CROSS JOIN LATERAL (
        SELECT id
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2 AND partition = open.id AND {IS_KNOWN} AND {MAY_START}
        ORDER BY priority DESC, run_after, id
        LIMIT GREATEST(0, open.number)
        FOR UPDATE SKIP LOCKED
    ) AS task
), heir AS MATERIALIZED (
    SELECT following.id, following.partition, given.lease_id AS before
    FROM (
        SELECT id, partition, row_number() OVER (PARTITION BY partition) AS turn FROM picked
    ) AS following
    JOIN given ON given.partition = following.partition AND given.turn = following.turn
), claimed AS (
    UPDATE taskqueue_task AS task
    SET status = 'running',
        attempt = task.attempt + 1,
        holds_unique_key = task.holds_unique_key AND task.unique_for <> 'started'
    FROM heir
    WHERE task.id = ANY (ARRAY[heir.id])
    RETURNING
        ((EXTRACT(epoch FROM clock_timestamp())::bigint - 1735689600) << 22)
            | (nextval('taskqueue_lease_id_seq') & 4194303) AS lease_id,
        heir.before, heir.partition AS passed_in, task.*
), leased AS (
    INSERT INTO taskqueue_lease (
        id, task_id, worker_id, attempt, status, is_limited, claimed_at, expires_at
    )
    SELECT
        lease_id, id, %(worker)s, attempt, 'running', true, now,
        now + COALESCE(lease_duration, %(lease_duration)s::interval)
    FROM claimed CROSS JOIN clock
), passed AS (
    UPDATE taskqueue_slot AS slot
    SET lease_id = claimed.lease_id
    FROM claimed
    WHERE slot.lease_id = ANY (ARRAY[claimed.before])
), freed AS (
    DELETE FROM taskqueue_slot
    WHERE lease_id = ANY (ARRAY(
        SELECT lease_id FROM given WHERE lease_id <> ALL (ARRAY(SELECT before FROM heir))
    ))
    RETURNING limiter_id
), noted AS (
    INSERT INTO taskqueue_limitnote (subject) SELECT limiter_id FROM freed
)
SELECT
    {{check}}, other.has_news, other.has_others, EXISTS (SELECT 1 FROM freed), task.passed_in::text,
    lease_id, {CLAIMED.format(failures="task.failures")}
FROM other
{{checked}}
LEFT JOIN claimed AS task ON true
ORDER BY priority DESC, run_after, id
"""  # noqa: S608  (of constants)


def passing(opening: str, **parts: str) -> str:
    """Return a statement that passes places on, with `clock` in its opening."""
    statement = PASSING
    for name, text in parts.items():
        statement = statement.replace(f"{{{name}}}", text)
    return f"{opening}, {statement}"


PASS_ON = passing(
    f"""
WITH clock AS MATERIALIZED (
    SELECT statement_timestamp() AS now WHERE {KEEPS_PLAN}
)""",
    ended="",
    is_taken="""(
                    finished_at IS NULL
                    OR id = ANY (ARRAY(SELECT lease_id FROM given WHERE partition <> asked.id))
                )""",
    is_new="true",
    check="NULL",
    checked="",
)


class Passed(NamedTuple):
    """The tasks that took the places of others, and whether there is more to claim."""

    claimed: list[Claimed]
    # The partitions of their leases.
    passing: dict[int, str]
    # Whether places were freed, or partitions may be open.
    has_news: bool
    # Whether places were freed.
    has_freed: bool
    # Whether tasks wait that belong to no partition.
    has_others: bool


def passing_parameters(ended: Mapping[int, str], terms: PassingTerms) -> dict[str, Any]:
    """Return the parameters of such a statement, without those about the leases."""
    return terms._asdict() | {
        "partitions": words(list(ended.values())),
        "served": texts(terms.served),
        "unknown": texts(terms.unknown),
    }


def pass_on(
    connection: BaseDatabaseWrapper, ended: Mapping[int, str], terms: PassingTerms
) -> Passed:
    """Lease the tasks that follow those of these leases in their partitions, in their places.

    The caller's transaction has recorded the leases.
    """
    parameters = {
        "passing": numbers(list(ended)),
        **passing_parameters(ended, terms),
    }
    with kept_plan(connection) as series:
        rows = fetch(connection, PASS_ON, parameters | {"series": series})
    return passed_of(rows)


def passed_of(rows: Sequence[tuple[Any, ...]]) -> Passed:
    """Return the result of a statement that passes places on."""
    _, has_news, has_others, has_freed = rows[0][:4]
    found = [row for row in rows if row[5] is not None]
    return Passed(
        claimed=[Claimed._make((*row[5:], True)) for row in found],
        passing={row[5]: bare(row[4]) for row in found},
        has_news=has_news or has_freed,
        has_freed=has_freed,
        has_others=has_others,
    )
