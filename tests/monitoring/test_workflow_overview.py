"""Workflows at a glance, for the dashboard."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from taskqueue.engine.statement import fetch, text_of
from taskqueue.models import Workflow
from taskqueue.monitoring import workflow_overview as module
from taskqueue.monitoring.workflow_overview import LOOKED_AT, workflow_overview
from tests.monitoring.rows import HOUR, MINUTE, ago

pytestmark = pytest.mark.django_db


def make(name: str = "nightly", status: str = "running", **fields: Any) -> Workflow:
    return Workflow.objects.create(name=name, status=status, format=1, **fields)


def test_nothing_is_told_without_workflows() -> None:
    found = workflow_overview()
    assert [str(each) for each in (found.running, found.failed_in_hour, found.failed_in_day)] == [
        "0", "0", "0",
    ]  # fmt: skip
    assert found.still == []


def test_those_that_run_and_that_failed_lately_are_counted_without_children() -> None:
    for status in ("running", "stopping", "compensating", "succeeded", "cancelled"):
        make(status=status)
    make(paused_at=ago(HOUR))
    make(parent_step_id=1)
    for hours in (0.5, 3, 30):
        make(status="failed", finished_at=ago(hours * HOUR))
    make(status="failed", finished_at=ago(MINUTE), parent_step_id=1)
    found = workflow_overview()
    assert found.running.value == 4
    assert (found.failed_in_hour.value, found.failed_in_day.value) == (1, 2)


def test_those_that_stand_still_for_longest_are_named_and_those_in_trouble_first() -> None:
    for name, minutes in (("a", 20), ("b", 60), ("c", 5), ("d", 30), ("e", 40)):
        make(name, moved_at=ago(minutes * MINUTE))
    make("paused", moved_at=ago(HOUR), paused_at=ago(HOUR))
    assert [row.name for row in workflow_overview().still] == ["b", "e", "d"]
    make("odd", trouble="it is odd")
    found = workflow_overview().still
    assert [row.name for row in found] == ["odd", "b", "e"]
    assert found[1].seconds == pytest.approx(3600, abs=60)


def test_counts_say_where_they_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LOOKED_AT", 3)
    for _ in range(4):
        make()
        make(status="failed", finished_at=ago(timedelta(hours=2)))
    found = workflow_overview()
    assert str(found.running) == "3+"
    assert (str(found.failed_in_hour), str(found.failed_in_day)) == ("0", "3+")


def test_few_rows_are_read_however_many_have_ended() -> None:
    if connection.vendor == "sqlite":
        text = text_of(connection, LOOKED_AT).replace("%(limit)s", "3")
        text = text.replace("%(now)s", "'2026-01-01'")
        plan = " ".join(str(row[3]) for row in fetch(connection, f"EXPLAIN QUERY PLAN {text}"))
        assert "USE TEMP B-TREE" not in plan
        assert "taskqueue_workflow_status" in plan
        return
    Workflow.objects.bulk_create(
        Workflow(name="old", status=status, format=1, finished_at=ago(HOUR))
        for status in ("succeeded", "failed")
        for _ in range(3000)
    )
    for statement in ("SELECT 1", "ANALYZE taskqueue_workflow"):
        with connection.cursor() as cursor:
            cursor.execute(statement)
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {LOOKED_AT.postgresql}"
        [(plan,)] = fetch(connection, explain, {"limit": 100})
        blocks = plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
        assert blocks < 150
