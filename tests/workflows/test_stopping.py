"""Cancels: what others hold is stopped a moment later, and each turn looks at few members."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue import group, task, workflow
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.workflows import serving, stopping
from taskqueue.engine.workflows.serving import serve
from taskqueue.models import Lease, Task, Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.workflows import Builder
from tests.engine.steps import another_connection, claim, end
from tests.sample.tasks import add
from tests.workflows.steps_of import assert_settled, finish

pytestmark = pytest.mark.django_db(transaction=True)
WIDTH = 25


@task
def read() -> int:
    return 1


def position(run: WorkflowRun) -> int:
    """Up to which place the turns have looked."""
    return Workflow.objects.get(id=run.id).stopped_place


def test_a_turn_of_a_stop_looks_at_so_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    run = add.starmap((n, 1) for n in range(WIDTH)).enqueue()
    claimed = claim(WIDTH)
    run.cancel("enough")
    assert Lease.objects.filter(stop_requested_at=None).count() == 0
    assert position(run) == stopping.BEFORE_ALL

    monkeypatch.setattr(stopping, "MOST_LOOKED", 10)
    positions = []
    for _ in range(6):
        serve(connection)
        positions.append(position(run))
    assert positions == [9, 19, -1, 9, 19, -1]

    # One that was claimed while the stop could not see it is found by one of the next turns.
    late = claimed[17]
    Lease.objects.filter(id=late.lease_id).update(stop_requested_at=None)
    serve(connection)
    assert Lease.objects.filter(stop_requested_at=None).count() == 1
    serve(connection)
    assert Lease.objects.filter(stop_requested_at=None).count() == 0

    for each in claimed:
        end(each, OutcomeKind.SUCCEEDED, return_value="1")
    finish(run)
    assert run.status == "cancelled"
    assert_settled(run)


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite locks the whole file.")
def test_a_cancel_comes_back_to_what_others_held(monkeypatch: pytest.MonkeyPatch) -> None:
    run = read.s().enqueue()
    [claimed] = claim(1)
    turns: list[Any] = []

    def sleep(seconds: float) -> None:
        turns.append(Lease.objects.get().stop_requested_at)
        if len(turns) == 2:
            holder.cursor().execute("COMMIT")

    monkeypatch.setattr(serving.time, "sleep", sleep)
    with another_connection() as holder:
        holder.cursor().execute("BEGIN")
        holder.cursor().execute("SELECT 1 FROM taskqueue_lease FOR UPDATE")
        run.cancel("enough")
    assert turns == [None, None]
    assert Lease.objects.get().stop_requested_at is not None
    end(claimed, OutcomeKind.FAILED)
    finish(run)
    assert run.status == "cancelled"
    assert Task.objects.get().status == "cancelled"
    assert_settled(run)


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite locks the whole file.")
def test_a_cancel_does_not_wait_for_what_others_hold_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "STOP_PAUSE", 0.0)
    run = read.s().enqueue()
    [claimed] = claim(1)
    with another_connection() as holder, transaction(holder):
        holder.cursor().execute("SELECT 1 FROM taskqueue_lease FOR UPDATE")
        run.cancel("enough")
        assert Lease.objects.get().stop_requested_at is None
    serve(connection)
    assert Lease.objects.get().stop_requested_at is not None
    end(claimed, OutcomeKind.FAILED)
    finish(run)
    assert run.status == "cancelled"


@workflow(name="tests.one_child")
def one_child(wf: Builder) -> None:
    wf.step(add.si(1, 1), name="only")


def test_a_stop_reads_the_children_that_run_and_no_other() -> None:
    run = group(one_child.s(), one_child.s()).enqueue()
    child = Workflow.objects.exclude(parent_step_id=None).first()
    assert child is not None
    others = {"parent_step_id": child.parent_step_id, "status": "succeeded", "format": child.format}
    Workflow.objects.bulk_create(Workflow(name="ended", **others) for _ in range(500))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE taskqueue_workflow")
    with CaptureQueriesContext(connection) as queries:
        run.cancel("enough")
    [found] = [
        query["sql"]
        for query in queries
        if '"parent_step_id" IN' in query["sql"] and "'running'" in query["sql"]
    ]
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {found}")
        plan = " ".join(str(row[-1]) for row in cursor.fetchall())
    assert "taskqueue_workflow_parent" in plan
    assert re.search(r"status.{1,30} = 'running'|status=\?", plan), plan
    assert not re.search(r"Sort|TEMP B-TREE|Filter", plan), plan
