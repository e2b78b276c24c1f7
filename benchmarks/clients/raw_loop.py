"""The raw loop: claim 100 tasks with their leases, record them, until there are none.

As fast as psycopg goes without pipelining: prepared statements, one round trip each, and nothing
between them. It reads what a worker needs to know, and leaves the rows that a worker leaves. Its
statements use the indexes that the engine's use: a condition less, and it sorts every ready task.
"""

from __future__ import annotations

import sys

import psycopg
from django.conf import settings

CLAIM = """
WITH picked AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE status = 'ready' AND route = 0 AND queue_name = 'default'
    ORDER BY priority DESC, run_after, id
    LIMIT 100
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE taskqueue_task AS task
    SET status = 'running', attempt = task.attempt + 1
    FROM picked
    WHERE task.id = picked.id
    RETURNING
        nextval('taskqueue_lease_id_seq') AS lease_id,
        task.id, task.name, task.attempt, task.args, task.kwargs
), leased AS (
    INSERT INTO taskqueue_lease (
        id, task_id, worker_id, attempt, status, claimed_at, expires_at, stop_requested_by,
        stop_reason, progress_message, error_class, error_message, traceback
    )
    SELECT
        lease_id, id, %s, attempt, 'running', clock_timestamp(),
        clock_timestamp() + interval '30 seconds', '', '', '', '', '', ''
    FROM claimed
)
SELECT lease_id, id::text, name, attempt, args::text, kwargs::text
FROM claimed
"""

RECORD = """
WITH ended AS (
    UPDATE taskqueue_lease
    SET status = 'succeeded', started_at = clock_timestamp(), finished_at = clock_timestamp()
    WHERE id = ANY (%s) AND finished_at IS NULL
    RETURNING task_id
)
UPDATE taskqueue_task AS task
SET status = 'succeeded',
    return_value = NULL,
    started_at = clock_timestamp(),
    finished_at = clock_timestamp(),
    prune_after = clock_timestamp() + interval '7 days'
FROM ended
WHERE task.id = ended.task_id AND task.status = 'running'
"""

# The settings of a worker that owns its session.
SESSION = """
SET plan_cache_mode = force_custom_plan;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off
"""


def main(name: str) -> None:
    """Drain the queue under that worker's name."""
    database = settings.DATABASES["default"]
    connection = psycopg.connect(
        host=database["HOST"],
        port=database["PORT"],
        user=database["USER"],
        dbname=database["NAME"],
        autocommit=True,
        prepare_threshold=0,
    )
    connection.execute(SESSION, prepare=False)
    cursor = connection.cursor()
    while tasks := cursor.execute(CLAIM, (name,)).fetchall():
        cursor.execute(RECORD, ([task[0] for task in tasks],))


if __name__ == "__main__":
    main(sys.argv[1])
