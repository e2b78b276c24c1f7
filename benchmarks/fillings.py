"""Statements that fill a table, with rows like those of an enqueue or a worker."""

from __future__ import annotations

COLUMNS = """
    id, name, queue_name, status, priority, run_after, args, kwargs, options, metadata,
    attempt, failures, crashes, max_attempts, max_crashes, crash_delay, unique_for,
    holds_unique_key, error_class, error_message, enqueued_at
"""

# Rows as an enqueue makes them, in that order.
FILL_READY = f"""
INSERT INTO taskqueue_task ({COLUMNS}, ready_at)
SELECT
    uuidv7(), 'benchmarks.tasks.noop', 'default', 'ready', 0, clock_timestamp(),
    jsonb_build_array(number), '{{}}', '{{}}', '{{}}', 0, 0, 0, 1, 3, interval '10 seconds', '',
    false, '', '', clock_timestamp(), clock_timestamp()
FROM generate_series(1, %s) AS number
"""

FILL_SCHEDULED = f"""
INSERT INTO taskqueue_task ({COLUMNS})
SELECT
    uuidv7(), 'benchmarks.tasks.noop', 'default', 'scheduled', 0,
    clock_timestamp() + interval '1 day' + number * interval '1 millisecond',
    jsonb_build_array(number), '{{}}', '{{}}', '{{}}', 0, 0, 0, 1, 3, interval '10 seconds', '',
    false, '', '', clock_timestamp()
FROM generate_series(1, %s) AS number
"""

# Tasks and their leases, as a worker leaves them behind.
FILL_FINISHED = f"""
WITH task AS (
    INSERT INTO taskqueue_task ({COLUMNS}, ready_at, started_at, finished_at, prune_after)
    SELECT
        uuidv7(), 'benchmarks.tasks.noop', 'default', 'succeeded', 0, clock_timestamp(),
        jsonb_build_array(number), '{{}}', '{{}}', '{{}}', 1, 0, 0, 1, 3, interval '10 seconds',
        '', false, '', '', clock_timestamp(), clock_timestamp(), clock_timestamp(),
        clock_timestamp(), clock_timestamp() + interval '7 days'
    FROM generate_series(1, %s) AS number
    RETURNING id
)
INSERT INTO taskqueue_lease (
    task_id, worker_id, attempt, status, claimed_at, started_at, expires_at, finished_at,
    stop_requested_by, stop_reason, progress_message, error_class, error_message, traceback
)
SELECT
    id, 'benchmark', 1, 'succeeded', clock_timestamp(), clock_timestamp(),
    clock_timestamp() + interval '30 seconds', clock_timestamp(), '', '', '', '', '', ''
FROM task
"""
NOOP = "'benchmarks.tasks.noop'"
FILLINGS = {"ready": FILL_READY, "scheduled": FILL_SCHEDULED, "finished": FILL_FINISHED}
