"""Cancels: what others hold is stopped a moment later, and each turn looks at few members."""

from __future__ import annotations

import re
import time
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue import group, task, workflow
from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.tally import Tally
from taskqueue.engine.workflows import serving, stopping
from taskqueue.engine.workflows.serving import serve
from taskqueue.models import Lease, Task, Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import travelling
from taskqueue.worker import duties
from taskqueue.workflows import Builder
from tests.engine.steps import HOUR, another_connection, claim, end
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
    for seconds in (1, 60):
        with travelling(seconds):
            while serve(connection):
                positions.append(position(run))
    assert positions == [9, 19, -1, 9, 19, -1]

    # One that was claimed while the stop could not see it is found by one of the next turns.
    late = claimed[17]
    Lease.objects.filter(id=late.lease_id).update(stop_requested_at=None)
    with travelling(120):
        serve(connection)
        assert Lease.objects.filter(stop_requested_at=None).count() == 1
        serve(connection)
    assert Lease.objects.filter(stop_requested_at=None).count() == 0

    for each in claimed:
        end(each, OutcomeKind.SUCCEEDED, return_value="1")
    finish(run)
    assert run.status == "cancelled"
    assert_settled(run)


def test_a_stop_that_waits_for_bodies_looks_again_ever_more_rarely() -> None:
    run = read.s().enqueue()
    [claimed] = claim(1)
    run.cancel("enough")
    turns = []
    for second in (1, 2, 20, 21, 600, 620, 640):
        with travelling(second):
            turns.append(serve(connection))
    assert turns == [True, True, True, False, True, False, True]
    end(claimed, OutcomeKind.FAILED)
    finish(run)
    assert run.status == "cancelled"
    assert_settled(run)


def test_stops_that_wait_keep_no_other_waiting() -> None:
    run = read.s().enqueue()
    claim(1)
    shared = {"format": 1, "status": "stopping", "stops_again_at": timezone.now() + HOUR}
    Workflow.objects.bulk_create(
        Workflow(name="waits", id=UUID(int=number), **shared) for number in range(1200)
    )
    run.cancel("enough")
    Lease.objects.update(stop_requested_at=None)
    with travelling(60):
        serve(connection)
    assert Lease.objects.get().stop_requested_at is not None


def test_one_turn_of_the_duties_cancels_a_wide_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "MOST_STOPPED", 10)
    run = add.starmap((n, 1) for n in range(85)).enqueue()
    run.cancel("enough")
    assert Task.objects.filter(status="cancelled").count() == 10
    monkeypatch.setattr(duties, "WORKFLOW_TURN", 60.0)
    own = duties.Duties(get_settings(), worker_id=0, tally=Tally())
    own.step(connection, time.monotonic())
    run.refresh()
    assert run.status == "cancelled"
    assert_settled(run)


@workflow(name="tests.slow_child")
def slow_child(wf: Builder) -> None:
    wf.step(read.s(), name="only")


@pytest.mark.postgresql_only
def test_a_child_that_others_hold_is_stopped_a_moment_later() -> None:
    run = group(slow_child.s(), slow_child.s()).enqueue()
    child = Workflow.objects.exclude(parent_step_id=None).order_by("id")[0]
    with another_connection() as holder, transaction(holder):
        holder.cursor().execute(
            "SELECT 1 FROM taskqueue_workflow WHERE id = %s FOR UPDATE", [child.id]
        )
        run.cancel("enough")
        child.refresh_from_db()
        assert child.status == "running"
    with travelling(1):
        serve(connection)
    assert finish(run).status == "cancelled"
    child.refresh_from_db()
    assert child.status == "cancelled"
    assert_settled(run)


@pytest.mark.postgresql_only  # SQLite locks the whole file.
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


@pytest.mark.postgresql_only  # SQLite locks the whole file.
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
    with travelling(1):
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
    found = [
        query["sql"]
        for query in queries
        if '"parent_step_id" IN' in query["sql"] and "'running'" in query["sql"]
    ]
    assert found
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    for sql in found:
        with connection.cursor() as cursor:
            cursor.execute(f"{explain} {sql}")
            plan = " ".join(str(row[-1]) for row in cursor.fetchall())
        assert "taskqueue_workflow_parent" in plan
        assert re.search(r"status.{0,30} = 'running'|status=\?", plan), plan
        assert not re.search(r"Sort|TEMP B-TREE|Filter", plan), plan
