"""The metrics of workflows say what stands in the database."""

from __future__ import annotations

import pytest
from django.db import connection

from taskqueue import workflow
from taskqueue.engine import totals
from taskqueue.engine.sums import merge_counts
from taskqueue.engine.workflows.counts import count_repairs
from taskqueue.models import StepEnd, Workflow, WorkflowCount
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.workflows import StepEnds
from taskqueue.workflows import Builder
from tests.monitoring.metrics.scraping import scrape, total, value
from tests.sample.tasks import add, fail
from tests.workflows.steps_of import finish
from tests.workflows.test_reconciling import end_without_folding
from tests.workflows.test_running import diamond

pytestmark = pytest.mark.django_db
NAME = "tests.diamond"


@workflow(name="tests.bad")
def bad(wf: Builder) -> None:
    wf.step(fail.si())


def test_open_workflows_stand_by_name_and_status() -> None:
    finish(diamond.enqueue(1))
    for _ in range(2):
        diamond.enqueue(1)
    diamond.enqueue(1).pause()
    Workflow.objects.filter(id=diamond.enqueue(1).id).update(status="stopping")
    samples = scrape()
    found = {
        status: value(samples, "workflows", name=NAME, status=status)
        for status in ("running", "paused", "stopping")
    }
    assert found == {"running": 2, "paused": 1, "stopping": 1}
    assert total(samples, "workflows") == 4
    assert total(samples, "workflows_capped") == 0


def test_ended_workflows_are_counted_for_good() -> None:
    for _ in range(2):
        finish(diamond.enqueue(1))
    finish(bad.enqueue())
    Workflow.objects.all().delete()
    before = scrape()
    merge_counts(connection)
    assert WorkflowCount.objects.filter(is_sum=True).count() == WorkflowCount.objects.count() == 2
    for samples in (before, scrape()):
        assert value(samples, "workflow_seconds_count", name=NAME, status="succeeded") == 2
        assert value(samples, "workflow_seconds_sum", name=NAME, status="succeeded") > 0
        assert value(samples, "workflow_seconds_count", name="tests.bad", status="failed") == 1
    sums = [name for name, _ in before if name == "taskqueue_workflow_seconds_sum"]
    assert len(sums) == 2


def test_repairs_are_counted_and_none_is_zero() -> None:
    assert value(scrape(), "workflow_repairs_total") == 0
    count_repairs(connection, ["a", "b", "b"])
    assert value(scrape(), "workflow_repairs_total") == 3
    merge_counts(connection)
    count_repairs(connection, ["a"])
    assert value(scrape(), "workflow_repairs_total") == 4


def test_step_ends_that_wait_to_be_counted_are_exported() -> None:
    (add.s(1, 2) | add.s(10)).enqueue()
    assert value(scrape(), "step_ends_waiting") == 0
    end_without_folding()
    assert StepEnd.objects.count() == 1
    assert value(scrape(), "step_ends_waiting") == 1


def test_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "MOST_LABELS", 2)
    for number in range(5):
        Workflow.objects.filter(id=diamond.enqueue(1).id).update(name=f"w{number}")
        WorkflowCount.objects.create(name=f"w{number}", what="succeeded", seconds=1.0)
    before = scrape()
    merge_counts(connection)
    for samples in (before, scrape()):
        for metric in ("workflows", "workflow_seconds_count"):
            names = {dict(labels)["name"] for name, labels in samples if name.endswith(metric)}
            assert names == {"w0", "w1", "…other"}
            assert total(samples, metric) == 5


def test_a_worker_measures_how_long_it_takes_to_move_workflows_on() -> None:
    (add.s(1, 2) | add.s(10)).enqueue()
    exchange = Exchange()
    exchange.recorded = end_without_folding()
    StepEnds().take(connection, exchange)
    assert exchange.advance_seconds is not None
    assert exchange.advance_seconds > 0
    nothing = Exchange()
    StepEnds().take(connection, nothing)
    assert nothing.advance_seconds is None
