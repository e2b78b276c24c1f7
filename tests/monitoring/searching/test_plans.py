"""No search reads the whole table, whatever is searched by and however little fits."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from taskqueue.models import Task
from taskqueue.monitoring.searching.finding import Effort, find
from taskqueue.monitoring.searching.search import parse
from tests.monitoring.many import fill
from tests.monitoring.searching.test_finding import SEARCHES

pytestmark = pytest.mark.django_db

SIZE = 20_000
SMALL = Effort(first=500, largest=1_000, most=2_000)
LARGE = ("taskqueue_task", "taskqueue_lease")
PARTIAL = ("claim", "apart", "partition", "waiting", "running")
"""Indexes of what is not over yet: to read one of these whole is no scan."""
LEAN = (
    "name", "queue_name", "status", "priority", "attempt", "enqueued_at", "run_after",
    "started_at", "finished_at", "error_class",
)  # fmt: skip


def test_no_page_of_a_search_is_a_scan() -> None:
    fill(SIZE)
    assert any(map(_is_scan, _plan("SELECT count(*) FROM taskqueue_task WHERE name = 'x'", ())))
    scans = []
    for text in SEARCHES:
        which = parse(text, now=timezone.now()).which
        for sql, parameters in _statements(which):
            scans += [f"{text}: {line}" for line in _plan(sql, parameters) if _is_scan(line)]
    assert scans == []


def _statements(which: Any) -> list[tuple[str, Any]]:
    """What the first page and the one behind it send."""
    sent: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        sent.append((sql, parameters))
        return execute(sql, parameters, many, context)

    tasks = Task.objects.only(*LEAN)
    with connection.execute_wrapper(note):
        page = find(which, tasks=tasks, effort=SMALL)
        page = find(which, tasks=tasks, before=page.older, effort=SMALL)
        find(which, tasks=tasks, after=page.newer, effort=SMALL)
    return sent


def _plan(statement: str, parameters: Any) -> list[str]:
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {statement}", parameters)
        return [str(row[-1]) for row in cursor.fetchall()]


def _is_scan(line: str) -> bool:
    """Whether it reads all of a large table, or sorts what it reads without a bound."""
    if connection.vendor == "postgresql":
        return any(f"Seq Scan on {table}" in line for table in LARGE)
    words = line.split()
    if words[:1] != ["SCAN"] or words[1] not in LARGE:
        return False
    # In the order of the key, up to a limit.
    return "sqlite_autoindex_taskqueue_task_1" not in line and not line.endswith(PARTIAL)
