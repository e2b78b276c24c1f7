"""Failure rates compared with the same hour on past days, and new kinds of error.

The rates come from the rollups, by ranges of time: the last quarter of an hour, and two hours of
each of the days before, around the present time of day. The past days are read only if enough has
failed recently. Tasks of taskqueue itself are left out, because deliveries of webhooks are retried
for as long as a receiver is away. Their kinds of error are counted separately.

A kind of error is the name of a task and the class of the error with which it failed. Its first
task is the first entry of the kind in an index of failed tasks, which is read by a loose scan: one
probe for each kind, however many tasks have failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.sqlite.values import clock, loaded
from taskqueue.engine.statement import Statement
from taskqueue.monitoring.outermost import outermost_workflows
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import whole_seconds

# The number of past days for the comparison.
DAYS = 7
# How many failed attempts within a quarter of an hour are enough to compare, and how many attempts.
LEAST_FAILED, LEAST_ATTEMPTS = 10, 20
MOST_NAMES = 50
# The most kinds of error that are read, that are reported of the project and of taskqueue itself,
# and the most tasks that are counted of each.
MOST_KINDS, MOST_NEW, COUNTED = 1_000, 10, 1_000
# How long a kind counts as new.
NEW = timedelta(hours=24)

_POSTGRESQL = """
WITH RECURSIVE recent AS MATERIALIZED (
    SELECT
        name, sum(failed + lost)::bigint AS failed,
        sum(succeeded + failed + lost + stopped)::bigint AS total
    FROM taskqueue_rollup
    WHERE starts_at >= date_trunc('minute', statement_timestamp()) - interval '15 minutes'
        AND substr(name, 1, 10) <> 'taskqueue.'
    GROUP BY name
    HAVING sum(failed + lost) >= %(failed)s
        AND sum(succeeded + failed + lost + stopped) >= %(attempts)s
    ORDER BY 2 DESC, name
    LIMIT %(names)s
), past AS (
    SELECT
        rollup.name, sum(rollup.failed)::bigint AS failed, sum(rollup.total)::bigint AS total
    FROM generate_series(1, %(days)s) AS day (number)
    CROSS JOIN LATERAL (
        SELECT name, failed + lost AS failed, succeeded + failed + lost + stopped AS total
        FROM taskqueue_rollup
        WHERE EXISTS (SELECT 1 FROM recent)
            AND starts_at >= date_bin('1 hour', statement_timestamp(), 'epoch')
                - day.number * interval '24 hours' - interval '1 hour'
            AND starts_at < date_bin('1 hour', statement_timestamp(), 'epoch')
                - day.number * interval '24 hours' + interval '1 hour'
    ) AS rollup
    WHERE rollup.name IN (SELECT name FROM recent)
    GROUP BY rollup.name
), kind (name, error_class, first_at, example, place) AS (
    (
        SELECT name, error_class, finished_at, id, 1
        FROM taskqueue_task
        WHERE status = 'failed'
        ORDER BY name, error_class, finished_at
        LIMIT 1
    )
    UNION ALL
    SELECT step.name, step.error_class, step.finished_at, step.id, kind.place + 1
    FROM kind
    CROSS JOIN LATERAL (
        SELECT name, error_class, finished_at, id
        FROM taskqueue_task
        WHERE status = 'failed' AND (name, error_class) > (kind.name, kind.error_class)
        ORDER BY name, error_class, finished_at
        LIMIT 1
    ) AS step
    WHERE kind.place < %(kinds)s
), news AS (
    SELECT name, error_class, first_at, example
    FROM (
        SELECT
            name, error_class, first_at, example,
            row_number() OVER (
                PARTITION BY substr(name, 1, 10) = 'taskqueue.' ORDER BY first_at DESC
            ) AS rank
        FROM kind
        WHERE first_at > statement_timestamp() - %(age)s::interval
    ) AS ranked
    WHERE rank <= %(new)s
    ORDER BY first_at DESC
)
SELECT
    'rate', recent.name, '', recent.failed, recent.total, COALESCE(past.failed, 0),
    COALESCE(past.total, 0), NULL::timestamptz, NULL::text, NULL::text
FROM recent
LEFT JOIN past ON past.name = recent.name
UNION ALL
SELECT
    'kind', news.name, news.error_class,
    counted.number, counted.in_workflows, 0, 0, news.first_at, news.example::text,
    (SELECT workflow_id::text FROM taskqueue_step WHERE id = counted.step_id)
FROM news
CROSS JOIN LATERAL (
    SELECT count(*) AS number, count(step_id) AS in_workflows, min(step_id) AS step_id
    FROM (
        SELECT task.step_id
        FROM taskqueue_task AS task
        WHERE task.status = 'failed'
            AND task.name = news.name AND task.error_class = news.error_class
        ORDER BY task.name, task.error_class, task.finished_at
        LIMIT %(counted)s
    ) AS first
) AS counted
"""
_SQLITE = """
WITH RECURSIVE recent AS MATERIALIZED (
    SELECT
        name, sum(failed + lost) AS failed, sum(succeeded + failed + lost + stopped) AS total
    FROM taskqueue_rollup
    WHERE starts_at >= strftime('%%Y-%%m-%%d %%H:%%M:00', %(now)s, '-15 minutes')
        AND substr(name, 1, 10) <> 'taskqueue.'
    GROUP BY name
    HAVING sum(failed + lost) >= %(failed)s
        AND sum(succeeded + failed + lost + stopped) >= %(attempts)s
    ORDER BY 2 DESC, name
    LIMIT %(names)s
), day (number) AS (
    SELECT 1 UNION ALL SELECT number + 1 FROM day WHERE number < %(days)s
), past AS (
    SELECT
        rollup.name, sum(failed + lost) AS failed,
        sum(succeeded + failed + lost + stopped) AS total
    FROM day
    CROSS JOIN taskqueue_rollup AS rollup
    WHERE EXISTS (SELECT 1 FROM recent)
        AND rollup.starts_at >= strftime(
            '%%Y-%%m-%%d %%H:00:00', %(now)s, '-' || (24 * day.number + 1) || ' hours'
        )
        AND rollup.starts_at < strftime(
            '%%Y-%%m-%%d %%H:00:00', %(now)s, '-' || (24 * day.number - 1) || ' hours'
        )
        AND rollup.name IN (SELECT name FROM recent)
    GROUP BY rollup.name
), kind (name, error_class, first_at, example, place) AS (
    SELECT name, error_class, finished_at, id, 1
    FROM (
        SELECT name, error_class, finished_at, id
        FROM taskqueue_task
        WHERE status = 'failed' AND name >= ''
        ORDER BY name, error_class, finished_at
        LIMIT 1
    )
    UNION ALL
    SELECT step.name, step.error_class, step.finished_at, step.id, kind.place + 1
    FROM kind
    CROSS JOIN taskqueue_task AS step
    WHERE kind.place < %(kinds)s AND step.id = (
        SELECT id
        FROM taskqueue_task
        WHERE status = 'failed' AND (name, error_class) > (kind.name, kind.error_class)
        ORDER BY name, error_class, finished_at
        LIMIT 1
    )
), news AS (
    SELECT name, error_class, first_at, example
    FROM (
        SELECT
            name, error_class, first_at, example,
            row_number() OVER (
                PARTITION BY substr(name, 1, 10) = 'taskqueue.' ORDER BY first_at DESC
            ) AS rank
        FROM kind
        WHERE first_at > %(since_text)s
    ) AS ranked
    WHERE rank <= %(new)s
    ORDER BY first_at DESC
), counted AS (
    SELECT
        name, error_class, first_at, example,
        (
            SELECT json_array(count(*), count(step_id), min(step_id))
            FROM (
                SELECT task.step_id
                FROM taskqueue_task AS task
                WHERE task.status = 'failed'
                    AND task.name = news.name AND task.error_class = news.error_class
                LIMIT %(counted)s
            )
        ) AS found
    FROM news
)
SELECT
    'rate', recent.name, '', recent.failed, recent.total, COALESCE(past.failed, 0),
    COALESCE(past.total, 0), NULL, NULL, NULL
FROM recent
LEFT JOIN past ON past.name = recent.name
UNION ALL
SELECT
    'kind', name, error_class, json_extract(found, '$[0]'), json_extract(found, '$[1]'), 0, 0,
    first_at, example,
    (SELECT workflow_id FROM taskqueue_step WHERE id = json_extract(found, '$[2]'))
FROM counted
"""
FAILING = Statement(postgresql=_POSTGRESQL, sqlite=_SQLITE)


# The statements' condition for names of taskqueue itself.
INTERNAL = "taskqueue."


def is_internal(name: str) -> bool:
    """Return whether it is a name, or a pattern of names, of taskqueue's own tasks."""
    return name.startswith(INTERNAL)


class NameRate(NamedTuple):
    """The attempts at tasks of a name: in the last 15 minutes, and in this hour on past days."""

    name: str
    failed: int
    total: int
    past_failed: int
    past_total: int


class NewError(NamedTuple):
    """A kind of error that was not seen before, as far as failed tasks are kept."""

    name: str
    error_class: str
    first_at: datetime
    # The first task that failed with it.
    example: str
    # The number of tasks that failed with it, up to a cap.
    number: int
    is_capped: bool
    # How many of these belong to workflows.
    in_workflows: int
    # The workflow of the first of them; of nested ones the outermost, which can be retried.
    workflow_id: UUID | None


class Failing(NamedTuple):
    """Changes in failures: failure rates that jumped, and new kinds of error."""

    rates: list[NameRate]
    new_errors: list[NewError]


def read_failing() -> Failing:
    """Return rates with enough attempts, and new kinds of error, in one statement."""
    rows = read(
        FAILING, failed=LEAST_FAILED, attempts=LEAST_ATTEMPTS, names=MOST_NAMES, days=DAYS,
        kinds=MOST_KINDS, new=MOST_NEW, counted=COUNTED + 1, age=NEW,
        since_text=whole_seconds(clock() - NEW),
    )  # fmt: skip
    rates = [NameRate(row[1], *map(int, row[3:7])) for row in rows if row[0] == "rate"]
    return Failing(rates, list(_new_errors(row for row in rows if row[0] == "kind")))


def _new_errors(rows: Iterable[tuple[Any, ...]]) -> Iterable[NewError]:
    found = list(rows)
    outermost = outermost_workflows(as_uuid(row[-1]) for row in found if row[-1])
    for _, name, error_class, number, in_workflows, *_, at, example, workflow in found:
        first_at = loaded(at)
        assert first_at is not None
        yield NewError(
            name, error_class, first_at, str(as_uuid(example)), min(number, COUNTED),
            number > COUNTED, min(in_workflows, COUNTED),
            outermost[as_uuid(workflow)] if workflow else None,
        )  # fmt: skip
