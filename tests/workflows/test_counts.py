"""Counts of workflows survive their pruning, and are kept in few rows."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import F, Sum

from taskqueue.engine import totals
from taskqueue.engine.sums import merge_counts
from taskqueue.engine.workflows.counts import count_repairs
from taskqueue.models import Workflow, WorkflowCount
from tests.engine.steps import another_connection, run_at_once
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish

pytestmark = pytest.mark.django_db(transaction=True)


def counted() -> dict[tuple[str, str], int]:
    rows = WorkflowCount.objects.values_list("name", "what").annotate(n=Sum("number")).order_by()
    return {(name, what): number for name, what, number in rows}


def test_ends_are_counted_by_name_and_status() -> None:
    runs = [finish((add.s(1, 1) | echo.s()).enqueue()) for _ in range(2)]
    failed = finish((fail.si() | echo.s()).enqueue())
    assert counted() == {(runs[0].name, "succeeded"): 2, (failed.name, "failed"): 1}
    took = [row.seconds for row in WorkflowCount.objects.filter(what="succeeded")]
    spans = Workflow.objects.filter(status="succeeded").annotate(
        took=F("finished_at") - F("created_at")
    )
    assert sum(took) == pytest.approx(sum(row.took.total_seconds() for row in spans), abs=0.01)


def test_counts_are_merged_into_one_row_each() -> None:
    for _ in range(2):
        count_repairs(connection, ["a", "a", "b"])
        before = counted()
        assert not merge_counts(connection)
        assert counted() == before
    assert counted() == {("a", "repaired"): 4, ("b", "repaired"): 2}
    assert WorkflowCount.objects.count() == 2


def test_names_behind_the_first_share_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "MOST_LABELS", 2)
    count_repairs(connection, ["a", "b"])
    merge_counts(connection)
    count_repairs(connection, ["c", "d", "a"])
    merge_counts(connection)
    assert counted() == {("a", "repaired"): 2, ("b", "repaired"): 1, ("…other", "repaired"): 2}


def test_workers_that_merge_at_once_lose_nothing() -> None:
    def merge() -> None:
        with another_connection() as own:
            for _ in range(10):
                count_repairs(own, ["a"])
                merge_counts(own)

    run_at_once([merge] * 4)
    merge_counts(connection)
    assert counted() == {("a", "repaired"): 40}
