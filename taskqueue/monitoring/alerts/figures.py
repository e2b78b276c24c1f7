"""Figures that alert rules compare: failures, failure rates, backlogs, workflows."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import NamedTuple

from taskqueue.core.histogram import bucket_of, quantile
from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.sqlite.values import loaded
from taskqueue.engine.statement import Statement
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import whole_seconds

# The most tasks that failed, and workflows, that are read: the newest; of running ones the oldest.
MOST_FAILURES = 10_000
MOST_WORKFLOWS = 1_000
# A workflow name with fewer successes among the newest has no usual time.
ENOUGH, SAMPLE = 20, 2_000

_FAILED = """
SELECT name, queue_name, count(*), max(finished_at), max(CAST(id AS text))
FROM (
    SELECT name, queue_name, finished_at, id
    FROM taskqueue_task
    WHERE status = 'failed' AND finished_at IS NOT NULL AND finished_at > {since}
    ORDER BY finished_at DESC
    LIMIT %(most)s
) AS failed
GROUP BY name, queue_name
"""
FAILED = Statement(
    postgresql=_FAILED.format(since="%(since)s"), sqlite=_FAILED.format(since="%(since_text)s")
)
# Only tasks of the project: deliveries of webhooks are retried for as long as a receiver is away.
_RATES = """
SELECT {column}, sum(failed + lost), sum(succeeded + failed + lost + stopped)
FROM taskqueue_rollup
WHERE starts_at >= {since} AND substr(name, 1, 10) <> 'taskqueue.'
GROUP BY {column}
"""


def _rates_by(column: str) -> Statement:
    return Statement(
        postgresql=_RATES.format(column=column, since="%(since)s"),
        sqlite=_RATES.format(column=column, since="%(since_text)s"),
    )


RATES = {"queue": _rates_by("queue_name"), "name": _rates_by("name")}
# Ready tasks that any worker may take, found by the claim's index.
BACKLOG = Statement.of("""
SELECT count(*)
FROM (
    SELECT 1
    FROM taskqueue_task
    WHERE status = 'ready' AND route = 0 AND queue_name = %(queue)s
    ORDER BY priority DESC
    LIMIT %(most)s
) AS counted
""")
FAILED_WORKFLOWS = Statement.of("""
SELECT name, finished_at, CAST(id AS text), {since finished_at}
FROM (
    SELECT name, finished_at, id, parent_step_id
    FROM taskqueue_workflow
    WHERE status = 'failed'
    ORDER BY id DESC
    LIMIT %(most)s
) AS failed
WHERE parent_step_id IS NULL
""")
WORKFLOW_TIMES = Statement.of("""
SELECT name, CAST(id AS text), CAST({since created_at} AS double precision), 1
FROM (
    SELECT name, id, created_at, parent_step_id
    FROM taskqueue_workflow
    WHERE status = 'running'
    ORDER BY id
    LIMIT %(most)s
) AS running
WHERE parent_step_id IS NULL
UNION ALL
SELECT
    name, NULL,
    CAST({since created_at} AS double precision) - CAST({since finished_at} AS double precision),
    0
FROM (
    SELECT name, created_at, finished_at, parent_step_id
    FROM taskqueue_workflow
    WHERE status = 'succeeded'
    ORDER BY id DESC
    LIMIT %(sample)s
) AS succeeded
WHERE parent_step_id IS NULL
""")


class Failures(NamedTuple):
    """The tasks of one name and queue that failed within some time."""

    name: str
    queue_name: str
    number: int
    latest_at: datetime
    example: str


class Rate(NamedTuple):
    """The attempts of one queue or name that ended within some time."""

    subject: str
    failed: int
    total: int


class FailedWorkflow(NamedTuple):
    """A workflow that failed."""

    name: str
    finished_at: datetime
    id: str
    seconds: float


class SlowWorkflow(NamedTuple):
    """A workflow that has been running for longer than most of its name."""

    name: str
    id: str
    seconds: float
    usual: float


def failures_since(since: datetime) -> list[Failures]:
    """Return the tasks that failed since then, by name and queue, among the newest."""
    rows = read(FAILED, since=since, since_text=whole_seconds(since), most=MOST_FAILURES)
    return [
        Failures(name, queue, number, moment, str(as_uuid(example)))
        for name, queue, number, at, example in rows
        if (moment := loaded(at)) is not None
    ]


def rates_since(by: str, since: datetime) -> list[Rate]:
    """Return the attempts that ended since then, by `queue` or `name`."""
    rows = read(RATES[by], since=since, since_text=whole_seconds(since))
    return [Rate(subject, int(failed), int(total)) for subject, failed, total in rows]


def backlog_of(queue_name: str, *, most: int) -> int:
    """Count the ready tasks of a queue, up to `most`."""
    return int(read(BACKLOG, queue=queue_name, most=most)[0][0])


def failed_workflows() -> list[FailedWorkflow]:
    """Return the workflows that failed, without children, among the newest."""
    return [
        FailedWorkflow(name, moment, str(as_uuid(id)), float(seconds))
        for name, at, id, seconds in read(FAILED_WORKFLOWS, most=MOST_WORKFLOWS)
        if (moment := loaded(at)) is not None
    ]


def slow_workflows() -> list[SlowWorkflow]:
    """Return the running workflows whose usual time is known, with its p95."""
    rows = read(WORKFLOW_TIMES, most=MOST_WORKFLOWS, sample=SAMPLE)
    times: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for name, _, seconds, is_running in rows:
        if not is_running:
            times[name][bucket_of(max(0.0, seconds))] += 1
    usual = {
        name: quantile(histogram, 0.95)
        for name, histogram in times.items()
        if sum(histogram.values()) >= ENOUGH
    }
    return [
        SlowWorkflow(name, str(as_uuid(id)), seconds, most)
        for name, id, seconds, is_running in rows
        if is_running and (most := usual.get(name)) is not None
    ]
