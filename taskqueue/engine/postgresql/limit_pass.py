"""Passing places on: the task after one that has ended takes its places, and no count changes."""

from __future__ import annotations

from taskqueue.engine.postgresql.claim import CLAIMED
from taskqueue.engine.postgresql.duties import WRITE_ROLLUPS
from taskqueue.engine.postgresql.events import PUBLISH_SUCCEEDED
from taskqueue.engine.postgresql.limit_tasks import IS_KNOWN, MAY_START
from taskqueue.engine.postgresql.record import DONE, successes

# The statement that records successes does it, and leaves the places of some leases. Each goes to
# the next task of the same partition. Places that are taken stay as many as they were, so that
# nothing is to be locked but the tasks: whoever counts under the lock of a limiter sees either the
# one lease or the other.
#
# Not where another partition waits for one of the limiters, its limit allows fewer now (places that
# leases of other partitions leave here count too, for these may pass on as well), or the queue is
# limited or paused; and where a partition may be open or an ordinary task is ready, only
# so many as the caller says. What is not passed on is given back with a note, as the trigger of the
# end of a lease does it.
#
# A partition stays as it is. It waits for a limiter alone, so that its place among others says
# nothing, and the end of the last of these leases opens it.
#
# Locks: leases by id, then their tasks, as the record does; then ready tasks by the order of the
# claim, skipping locked ones. `given` sorts, so that all of the former are locked by then.
_PASSING = f"""{DONE}
){{published}}{{counted}}, begun AS MATERIALIZED (
    -- Behind the ends.
    SELECT clock_timestamp() AS now
), other AS MATERIALIZED (
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
    JOIN done ON done.lease_id = ended.lease_id
    CROSS JOIN LATERAL (
        SELECT count(*) AS number FROM taskqueue_slot WHERE lease_id = ended.lease_id
    ) AS place
), asked AS MATERIALIZED (
    SELECT
        partition AS id, min(places) AS least, max(places) AS most,
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
                WHERE id = slot.lease_id AND finished_at IS NULL
                    AND id <> ALL (ARRAY(SELECT lease_id FROM given WHERE partition = asked.id))
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
    WHERE asked.least = asked.most
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
    FROM claimed CROSS JOIN begun
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
    CASE WHEN whole.number < %(expected)s::int OR whole.steps > 0{{late}} THEN {{unless_whole}} END,
    other.has_news, other.has_others, EXISTS (SELECT 1 FROM freed), task.passed_in::text,
    lease_id, {CLAIMED.format(failures="task.failures")}
FROM other
CROSS JOIN (SELECT count(*) AS number, count(step_id) AS steps FROM done) AS whole
LEFT JOIN claimed AS task ON true
ORDER BY priority DESC, run_after, id
"""  # noqa: S608  (of constants)


def _statement(**parts: str) -> str:
    returned = _PASSING
    for name in ("published", "counted", "late", "unless_whole"):
        returned = returned.replace("{" + name + "}", parts.get(name, ""))
    return successes(
        opening=", done AS (",
        places=""",
        is_limited = lease.is_limited AND lease.id <> ALL (%(passing)s::bigint[])""",
        returned=returned,
    )


# What was recorded, unless all was, and no task of a workflow.
_RECORDED = "(SELECT json_agg(json_build_array(lease_id, step_id)) FROM done)::text"
RECORD_AND_PASS = _statement(unless_whole=_RECORDED)
# With the events of the successes.
PASS_WITH_EVENTS = _statement(
    unless_whole=_RECORDED, published=f", published AS ({PUBLISH_SUCCEEDED})"
)
# With all that is counted, so that it needs no transaction around it: an error unless all is
# recorded. Who has waited for a lock for so long that the counts may have been merged begins anew.
PASS_AT_ONCE = _statement(
    counted=f", counted AS ({WRITE_ROLLUPS})",
    late=" OR clock_timestamp() > statement_timestamp() + interval '30 seconds'",
    unless_whole="(whole.number || ' of ' || %(expected)s::int || ' are recorded')::int::text",
)
