"""The statements that create the rows of a busy week.

Without parameters they contain single percent signs, with parameters doubled ones.
"""

from __future__ import annotations

NAMES, QUEUES, WORKERS = 300, 100, 12
RARE_EVERY = 500_000
"""One task in so many has a name that is found nowhere else."""

# Skewed: the first name is the most frequent. Every name keeps to one queue.
_NAME = (
    f"CASE pick.seed %% {RARE_EVERY} WHEN 1 THEN 'shop.tasks.rarely'"
    " ELSE 'shop.tasks.task_' || lpad(pick.name::text, 3, '0') END"
)
_QUEUE = f"'queue-' || (pick.name %% {QUEUES})"
_PICK = (
    f"(SELECT floor({NAMES} * power(random(), 2))::int AS name, random() AS chance, number AS seed)"
)
_COLUMNS = """
    id, name, queue_name, status, priority, run_after, args, kwargs, options, metadata,
    attempt, failures, crashes, max_attempts, max_crashes, crash_delay, unique_for,
    holds_unique_key, error_class, error_message, enqueued_at, ready_at, started_at, finished_at,
    prune_after
"""
_SHARED = """
    jsonb_build_array(number),
    jsonb_build_object(
        'user', jsonb_build_object('id', number %% 100000),
        'address', 'user-' || number || '@example.com'
    ),
    '{}', jsonb_build_object('tenant', number %% 50)
"""

# Parameters: seconds between two tasks twice, the first number, the last.
FINISHED = f"""
INSERT INTO taskqueue_task ({_COLUMNS})
SELECT
    uuidv7(age), {_NAME}, {_QUEUE}, status, 0, at, {_SHARED},
    1, (status = 'failed')::int, 0, 3, 3, interval '10 seconds', '', false,
    CASE status WHEN 'failed' THEN 'shop.errors.Error' || number %% 12 ELSE '' END,
    CASE status WHEN 'failed' THEN 'The order ' || number || ' was refused.' ELSE '' END,
    at, at, at + interval '1 second', at + chance * interval '20 seconds', at + interval '8 days'
FROM (
    SELECT
        number, pick.*, -(%s - number * %s) * interval '1 second' AS age,
        clock_timestamp() - (%s - number * %s) * interval '1 second' AS at,
        CASE
            WHEN pick.chance < 0.0102 THEN 'failed'
            WHEN pick.chance < 0.0122 THEN 'cancelled'
            ELSE 'succeeded'
        END AS status
    FROM generate_series(%s, %s) AS number CROSS JOIN LATERAL {_PICK} AS pick
) AS pick
"""

# Parameters: the status twice, seconds until the last of them may run, how many.
PENDING = f"""
INSERT INTO taskqueue_task ({_COLUMNS})
SELECT
    uuidv7(), {_NAME}, {_QUEUE}, %s, (ARRAY[0, 0, 0, 5, -5])[1 + number %% 5],
    clock_timestamp() + chance * %s * interval '1 second', {_SHARED},
    (%s = 'retrying')::int, 0, 0, 3, 3, interval '10 seconds', '', false, '', '',
    clock_timestamp(), clock_timestamp(), NULL, NULL, NULL
FROM generate_series(1, %s) AS number CROSS JOIN LATERAL {_PICK} AS pick
"""

_LEASE_COLUMNS = """
    task_id, worker_id, attempt, status, claimed_at, started_at, expires_at, finished_at,
    stop_requested_by, stop_reason, progress, progress_message, error_class, error_message,
    traceback
"""
LEASES = f"""
INSERT INTO taskqueue_lease ({_LEASE_COLUMNS})
SELECT
    id, 'worker-' || floor(random() * {WORKERS})::int, 1,
    CASE status WHEN 'cancelled' THEN 'stopped' ELSE status END,
    ready_at, started_at, started_at + interval '30 seconds', finished_at, '', '', NULL, '',
    error_class, error_message,
    CASE status WHEN 'failed' THEN repeat('  File "shop/tasks.py", line 7, in f' || chr(10), 20)
        ELSE '' END
FROM (
    SELECT * FROM taskqueue_task WHERE finished_at IS NOT NULL ORDER BY id DESC LIMIT %s
) AS newest
ORDER BY id
"""
RUNNING = f"""
INSERT INTO taskqueue_lease ({_LEASE_COLUMNS})
SELECT
    id, 'worker-' || (row_number() OVER ())::int % {WORKERS}, 1, 'running', clock_timestamp(),
    clock_timestamp() - random() * interval '10 minutes', clock_timestamp() + interval '1 day',
    NULL, '', '', 40, 'Packing', '', '', ''
FROM taskqueue_task
WHERE status = 'running'
"""
LOGS = """
INSERT INTO taskqueue_tasklog (task_id, attempt, logged_at, level, logger, message)
SELECT newest.id, 1, newest.finished_at, (ARRAY[10, 20, 30, 40])[line], 'shop', 'Line ' || line
FROM (
    SELECT id, finished_at FROM taskqueue_task
    WHERE finished_at IS NOT NULL ORDER BY id DESC LIMIT %s
) AS newest CROSS JOIN generate_series(1, 4) AS line
"""

# Minutes of two hours, quarters of a day, hours of 90 days, as workers merge them.
ROLLUPS = f"""
INSERT INTO taskqueue_rollup (
    id, resolution, starts_at, queue_name, name, succeeded, failed, lost, stopped, returned,
    tasks_succeeded, tasks_failed, tasks_cancelled, run_seconds, run_times, wait_seconds,
    wait_times, slowest_seconds, slowest_task_id
)
SELECT
    gen_random_uuid(), span.seconds,
    date_bin(span.seconds * interval '1 second', clock_timestamp(), 'epoch')
        - (span.skipped + step) * span.seconds * interval '1 second',
    'queue-' || name % {QUEUES}, 'shop.tasks.task_' || lpad(name::text, 3, '0'),
    span.seconds, span.seconds / 100, 1, 0, 0, span.seconds, span.seconds / 100, 0, 100,
    times.run, 100, times.wait, random() * 100, gen_random_uuid()
FROM (VALUES (3600, 24, 90 * 24 - 24), (900, 8, 88), (60, 0, 120)) AS span (seconds, skipped, steps)
CROSS JOIN LATERAL generate_series(0, span.steps - 1) AS step
CROSS JOIN generate_series(0, {NAMES - 1}) AS name
CROSS JOIN LATERAL (
    SELECT
        jsonb_object_agg((bucket - 8)::text, 1 + (step + name + bucket) % 9) AS run,
        jsonb_object_agg((bucket - 30)::text, 1 + (step + bucket) % 9) AS wait
    FROM generate_series(name % 4, name % 4 + 9) AS bucket
) AS times
"""
QUEUE_ROWS = f"""
INSERT INTO taskqueue_queue (name, paused_at, paused_by, pause_reason)
SELECT 'queue-' || number, CASE number WHEN 7 THEN clock_timestamp() END, 'ann', 'They move house'
FROM generate_series(0, {QUEUES - 1}) AS number
"""
# Their leases last for a day, so that they live as long as the benchmark.
WORKER_ROWS = f"""
INSERT INTO taskqueue_worker (
    name, incarnation, host, pid, status, queues, concurrency, pool, versions, lease_seconds,
    started_at, seen_at, running_leases, memory_bytes, is_idle, trouble
)
SELECT
    'worker-' || number, gen_random_uuid(), 'host-' || number % 4, 1000 + number,
    CASE WHEN number < {WORKERS} THEN 'running' ELSE 'stopped' END, '{{}}', 8, 'process',
    '{{"taskqueue": "1.0", "python": "3.13"}}', 86400, clock_timestamp(), clock_timestamp(), 5,
    123456789, false, ''
FROM generate_series(0, {WORKERS + 20}) AS number
"""
AUDIT = """
INSERT INTO taskqueue_audit (at, actor, noun, verb, subject, reason, before)
SELECT
    clock_timestamp(), 'ann', 'task', 'retry', gen_random_uuid()::text, 'The shop was closed',
    'failed'
FROM generate_series(1, 100000)
"""
OPERATIONS = """
INSERT INTO taskqueue_operation (
    id, verb, query, chosen, arguments, status, expected, matched, done, requested_by, reason,
    error, finished_at
)
SELECT
    uuidv7(), 'retry', 'status:failed', '{"statuses": ["failed"]}', '{}', 'finished', 1000, 1000,
    900, 'ann', 'The shop was closed', '', clock_timestamp()
FROM generate_series(1, 2000)
"""
OCCURRENCES = """
INSERT INTO taskqueue_occurrence (
    schedule_id, nominal_at, count, status, reason, task_status, enqueued_at, finished_at
)
SELECT
    schedule.id, clock_timestamp() - number * interval '1 hour', 1, 'ended', '', 'succeeded',
    clock_timestamp(), clock_timestamp()
FROM taskqueue_schedule AS schedule CROSS JOIN generate_series(1, 2000) AS number
"""
INDEXES = """
SELECT index.relname, pg_get_indexdef(index.oid)
FROM pg_index
JOIN pg_class AS index ON index.oid = pg_index.indexrelid
WHERE pg_index.indrelid = %s::regclass
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = index.oid)
"""
