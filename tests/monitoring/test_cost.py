"""What is read costs as much over millions of rows: by an index, in few statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from taskqueue.engine.connections import installed
from taskqueue.engine.sqlite.values import clock, stored
from taskqueue.engine.statement import text_of
from taskqueue.models import Task
from taskqueue.monitoring.counts import status_counts
from taskqueue.monitoring.doctor.work import look_at_work
from taskqueue.monitoring.metrics.collector import DatabaseCollector
from taskqueue.monitoring.metrics.figures import WAITING
from taskqueue.monitoring.notices import notices
from taskqueue.monitoring.notices.waiting import PARKED
from taskqueue.monitoring.overview import overview
from taskqueue.monitoring.performance import performance
from taskqueue.monitoring.read_models.attempt import running_now
from taskqueue.monitoring.read_models.base import EVERYTHING
from taskqueue.monitoring.read_models.failure_group import failures, retrying
from taskqueue.monitoring.read_models.queue import queue_named, queues_after, read_queues
from taskqueue.monitoring.read_models.worker import read_workers, workers_after
from taskqueue.monitoring.rollups import SPANS
from taskqueue.monitoring.series import series
from taskqueue.monitoring.why import why
from tests.engine.steps import another_connection
from tests.monitoring.many import fill
from tests.monitoring.rows import HOUR, ago, make_running, make_task

ASKS_FOR_TIME = connection.vendor == "postgresql"
"""SQLite's clock is this process's."""
Reading = Callable[[], Any]
QUERIES: dict[str, tuple[Reading, int]] = {
    "status counts": (status_counts, 1),
    "queue figures": (read_queues, 4),
    "queue figures where the workers are known": (lambda: read_queues(workers=[]), 3),
    "a page of queues": (lambda: queues_after("", limit=10), 5),
    "one queue": (lambda: queue_named("mail"), 4),
    "worker figures": (read_workers, 1),
    "a page of workers": (lambda: workers_after("", limit=10), 1),
    "running now": (running_now, 1),
    "failures": (failures, 1),
    "retrying": (lambda: retrying(EVERYTHING), 1),
    "notices": (notices, 14),
    "metrics": (lambda: list(DatabaseCollector().collect()), 20),
    "overview": (overview, 16),
    "the doctor's look at the work": (
        lambda: list(look_at_work(connection)),
        17,
    ),
    "why of one in line": (lambda: why(_task("ready")), 6 + ASKS_FOR_TIME),
    "why of one that runs": (lambda: why(_task("running")), 1),
    "why of one that has ended": (lambda: why(_task("cancelled")), 2),
    **{f"series of a {span}": (lambda span=span: series(span), 1) for span in SPANS},
    **{f"performance of a {span}": (lambda span=span: performance(span), 1) for span in SPANS},
}


def _task(status: str) -> Task:
    """As one that was enqueued last of all."""
    return Task(
        name="a", status=status, run_after=timezone.now(), route=0, workers=1,
        worker_names=None, broadcast=False, pinned_to="",
    )  # fmt: skip


SIZE = 40_000
"""Several times what is counted: of less PostgreSQL reads the table, which is then as cheap."""
LARGE = ("taskqueue_task", "taskqueue_lease")


PARTIAL = ("claim", "apart", "partition", "waiting", "promote", "running")
"""Indexes of what is not over yet: to read one of these whole is no scan."""


def test_each_reading_is_few_statements_and_no_scan(db: None) -> None:
    fill(SIZE)
    # That runs for long, so that its usual time is asked for.
    make_running(started_at=ago(HOUR))
    make_task(route=1, workers=2, open_slots=2, run_after=ago(HOUR))
    for table in LARGE:
        statement = f"SELECT count(*) FROM {table} WHERE error_class = 'x'"
        assert any(map(_is_scan, _plan(statement, ()))), "A scan would not be noticed."
    found = {name: _statements(reading) for name, (reading, _) in QUERIES.items()}
    assert {name: len(statements) for name, statements in found.items()} == {
        name: number for name, (_, number) in QUERIES.items()
    }
    scans = [
        f"{name}: {line}"
        for name, statements in found.items()
        for statement in statements
        for line in _plan(*statement)
        if _is_scan(line)
    ]
    assert scans == []
    # However few are asked for, that another index might show soon.
    plan = "\n".join(_plan(text_of(connection, WAITING), {"limit": 50}))
    assert plan.count("taskqueue_task_waiting") == 3, plan
    given = {"limit": 50, "unknown": "x", "now": stored(clock())}
    plan = "\n".join(_plan(text_of(connection, PARKED), given))
    assert "taskqueue_lease_unsuccessful" in plan, plan
    assert "taskqueue_task_promote" in plan, plan


@pytest.mark.postgresql_only
def test_the_server_may_bind_the_parameters(db: None) -> None:
    """As `server_side_binding` in a project's settings asks for: then each has to have a type."""
    with another_connection() as bound, installed(bound):
        assert bound.settings_dict["OPTIONS"]["server_side_binding"]
        for reading, _ in QUERIES.values():
            reading()


def _statements(reading: Reading) -> list[tuple[str, Any]]:
    """What it sends, with the parameters beside it: SQLite plans without knowing them."""
    sent: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        sent.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        reading()
    return sent


def _plan(statement: str, parameters: Any) -> list[str]:
    """The lines of the plan."""
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {statement}", parameters)
        return [str(row[-1]) for row in cursor.fetchall()]


def _is_scan(line: str) -> bool:
    """Whether it reads all of a large table, or of an index over all of it."""
    if connection.vendor == "postgresql":
        return any(f"Seq Scan on {table} " in line for table in LARGE)
    words = line.split()
    if words[:1] != ["SCAN"] or words[1] not in (*LARGE, "task", "lease"):
        return False
    return not line.endswith(PARTIAL)
