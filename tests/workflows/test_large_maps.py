"""Maps of many members, and graphs of many steps, are moved in short statements."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from uuid import uuid4

import psutil
import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from taskqueue import group, workflow
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.workflows import advancing, stopping
from taskqueue.engine.workflows.pruning import prune_workflows
from taskqueue.engine.workflows.reconciling import reconcile
from taskqueue.engine.workflows.serving import serve
from taskqueue.models import Audit, Member, Step, StepCalls, StepEnd, Task, Workflow
from taskqueue.monitoring.why import why_workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import run_due, travelling
from taskqueue.workflows import Builder
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import assert_settled
from tests.workflows.test_reconciling import end_without_folding, repairs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
MEMBERS = 100_000 if os.environ.get("TASKQUEUE_FULL") == "1" else 5_000
STEPS = 9_000 if os.environ.get("TASKQUEUE_FULL") == "1" else 3_000
# Seconds. Each statement takes a few tenths; those that compare each row with each took from 44 on.
LONGEST = 6.0
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def clock() -> Callable[[], float]:
    """The processor time of the server of this session, where it runs here: the machine is busy."""
    if connection.vendor == "postgresql":
        connection.ensure_connection()
        with suppress(psutil.NoSuchProcess):
            server = psutil.Process(connection.connection.info.backend_pid)
            if server.name() == "postgres":
                return lambda: sum(server.cpu_times()[:2])
    return time.perf_counter


@contextmanager
def timed() -> Iterator[list[tuple[float, str]]]:
    """Collect how long each statement took."""
    took: list[tuple[float, str]] = []
    now = clock()

    def execute(run: Any, sql: str, *given: Any) -> Any:
        began = now()
        try:
            return run(sql, *given)
        finally:
            took.append((now() - began, sql))

    with connection.execute_wrapper(execute):
        yield took


@contextmanager
def short_statements() -> Iterator[None]:
    """Assert that no statement takes long: on PostgreSQL, where others wait for it."""
    with timed() as took:
        yield
    seconds, sql = max(took)
    assert connection.vendor == "sqlite" or seconds < LONGEST, f"{seconds:.2f} s: {sql[:500]}"


def large_map() -> WorkflowRun:
    analyze_members_of_another_step()
    with short_statements():
        run: WorkflowRun = (add.starmap((n, 1) for n in range(MEMBERS)) | echo.s()).enqueue()
        while serve(connection):
            pass
    analyze(Task)
    return run


def analyze_members_of_another_step() -> None:
    """Leave statistics by which the step of the map has no members."""
    Member.objects.bulk_create(
        Member(step_id=0, place=place, task_id=uuid4()) for place in range(1000)
    )
    analyze(Member)
    Member.objects.all().delete()


def analyze(model: type[Model]) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def look_at(run: WorkflowRun) -> None:
    """Do what pages and commands do."""
    run.refresh()
    assert run.progress[1] == MEMBERS + 1
    row = Workflow.objects.get(id=run.id)
    assert "member_runs" in {reason.code for reason in why_workflow(row)}
    call_command("taskqueue", "workflows", "show", str(run.id), stdout=StringIO())
    call_command("taskqueue", "workflows", "list", stdout=StringIO())
    user, _ = get_user_model().objects.get_or_create(
        username="root", is_staff=True, is_superuser=True
    )
    client = Client()
    client.force_login(user)
    page = reverse("admin:taskqueue_workflow_change", args=[run.id])
    lists = reverse("admin:taskqueue_workflow_changelist")
    api = f"/api/v1/workflows/{run.id}/"
    tasks = f"{api}tasks/?step=add"
    for address in (lists, page, f"{page}?step=add", api, f"{api}steps/", f"{api}graph/", tasks):
        assert client.get(address).status_code == 200, address


def test_a_large_map_is_started_listed_cancelled_and_pruned() -> None:
    run = large_map()
    assert Task.objects.filter(status="ready").count() == MEMBERS
    assert not StepCalls.objects.exists()
    with short_statements():
        look_at(run)
    end_without_folding(1000)
    with travelling(61), short_statements():
        reconcile(connection)
    assert repairs() == 0
    with short_statements():
        run.cancel("too many")
        while serve(connection):
            pass
    run.refresh()
    assert run.status == "cancelled"
    assert_settled(run)
    assert Task.objects.filter(status="cancelled").count() == MEMBERS + 1 - 1000

    Workflow.objects.update(prune_after=LONG_AGO)
    with short_statements():
        while prune_workflows(connection):
            pass
    for model in (Workflow, Step, Task, Member, StepEnd):
        assert not model._default_manager.exists(), model
    assert Audit.objects.exists()


def test_a_cancel_goes_on_behind_the_members_that_it_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stopping, "MOST_STOPPED", 10)
    found: list[list[int]] = []
    read = stopping._to_stop

    def noted(connection: Any, workflow: Workflow, steps: Any) -> Any:
        ids = read(connection, workflow, steps)
        found.append([workflow.stopped_step_id, workflow.stopped_place])
        return ids

    monkeypatch.setattr(stopping, "_to_stop", noted)
    numbers = group(add.starmap((n, 1) for n in range(25)), echo.starmap([(n,) for n in range(25)]))
    run = numbers.enqueue()
    first, second = Step.objects.filter(workflow=run.id, kind="map").order_by("id")
    run.cancel()
    while serve(connection):
        pass
    assert found[:6] == [
        [first.id, 9], [first.id, 19], [second.id, 4], [second.id, 14], [second.id, 24], [0, -1],
    ]  # fmt: skip
    run.refresh()
    assert run.status == "cancelled"
    assert_settled(run)


def test_a_large_map_that_waits_for_its_last_member_is_looked_at_cheaply() -> None:
    run = large_map()
    ended = {"status": "succeeded", "finished_at": LONG_AGO, "return_value": 1}
    last = Task.objects.filter(name=add.name).order_by("-place").first()
    assert last is not None
    Task.objects.filter(name=add.name).exclude(id=last.id).update(**ended)
    Step.objects.filter(workflow=run.id, kind="map").update(ended=MEMBERS - 1)
    with short_statements(), travelling(61):
        look_at(run)
        reconcile(connection)
    assert repairs() == 0


@workflow(name="tests.many_steps")
def many_steps(wf: Builder) -> None:
    first = wf.step(fail.s("no"), name="first")
    for number in range(STEPS):
        wf.step(add.si(number, 1), name=f"step{number}", after=first)


@pytest.mark.parametrize("when", ["before", "after"])
def test_many_steps_are_cancelled_and_retried_in_short_statements(when: str) -> None:
    analyze_members_of_another_step()
    if when == "before":
        analyze(Task)
    run = many_steps.enqueue()
    with short_statements():
        run_due(fail, errors="record")
    run.refresh()
    assert run.status == "failed"
    assert Task.objects.filter(status="cancelled").count() == STEPS
    if when == "after":
        analyze(Task)
    with short_statements():
        run.retry()
        while serve(connection):
            pass
    assert Task.objects.filter(status="blocked").count() == STEPS
    assert_waiting(run)


def test_a_fold_counts_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many steps, its statement compares each with each note."""
    sizes: list[int] = []
    dialect = dialect_for(connection)
    fold = dialect.fold

    def noted(connection: Any, steps: Any) -> Any:
        sizes.append(len(steps))
        return fold(connection, steps)

    monkeypatch.setattr(dialect, "fold", staticmethod(noted))
    run = many_steps.enqueue()
    run_due(fail, errors="record")
    while serve(connection):
        pass
    assert not StepEnd.objects.exists()
    run.refresh()
    assert run.progress == (STEPS + 1, STEPS + 1)
    run.retry()
    assert max(sizes) == advancing.MOST_FOLDED


def assert_waiting(run: WorkflowRun) -> None:
    waiting = Step.objects.filter(workflow=run.id, status="waiting")
    assert waiting.filter(waits=1, ended=0, failures=0, finished_at=None).count() == STEPS
