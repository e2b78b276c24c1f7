"""The statement that counts what has ended in each queue within the last hour."""

from taskqueue.engine.statement import Statement

# Ended tasks by queue and by the number of five-minute steps ago; the current step is 0. Also the
# attempts of the last 15 minutes that ended, and those that failed.
FINISHED = Statement(
    postgresql="""
        SELECT
            queue_name,
            (EXTRACT(
                epoch FROM date_bin('5 minutes', statement_timestamp(), 'epoch')
                    - date_bin('5 minutes', starts_at, 'epoch')
            ) / 300)::int AS ago,
            sum(tasks_succeeded + tasks_failed + tasks_cancelled)::bigint,
            COALESCE(sum(succeeded + failed + lost + stopped) FILTER (
                WHERE starts_at
                    >= date_trunc('minute', statement_timestamp()) - interval '15 minutes'
            ), 0)::bigint,
            COALESCE(sum(failed + lost) FILTER (
                WHERE starts_at
                    >= date_trunc('minute', statement_timestamp()) - interval '15 minutes'
                    AND substr(name, 1, 10) <> 'taskqueue.'
            ), 0)::bigint
        FROM taskqueue_rollup
        WHERE starts_at
            >= date_bin('5 minutes', statement_timestamp(), 'epoch') - interval '55 minutes'
        GROUP BY queue_name, ago
    """,
    sqlite="""
        SELECT
            queue_name,
            CAST(strftime('%%s', substr(%(now)s, 1, 19)) AS integer) / 300
                - CAST(strftime('%%s', substr(starts_at, 1, 19)) AS integer) / 300 AS ago,
            sum(tasks_succeeded + tasks_failed + tasks_cancelled),
            COALESCE(sum(succeeded + failed + lost + stopped) FILTER (
                WHERE starts_at >= strftime('%%Y-%%m-%%d %%H:%%M:00', %(now)s, '-15 minutes')
            ), 0),
            COALESCE(sum(failed + lost) FILTER (
                WHERE starts_at >= strftime('%%Y-%%m-%%d %%H:%%M:00', %(now)s, '-15 minutes')
                    AND substr(name, 1, 10) <> 'taskqueue.'
            ), 0)
        FROM taskqueue_rollup
        WHERE starts_at >= strftime('%%Y-%%m-%%d %%H:%%M:%%S', %(now)s, '-60 minutes')
        GROUP BY queue_name, ago
    """,
)
