"""Pauses: nothing begins at any depth, and a deadline goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from queue import Queue
from threading import Thread
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from taskqueue import workflow
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.statement import fetch
from taskqueue.engine.workflows import rounds
from taskqueue.engine.workflows.advancing import Advance
from taskqueue.engine.workflows.locking import lock_workflows
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Audit, Step, Task, Workflow
from taskqueue.monitoring.why.workflows import why_workflow
from taskqueue.results.workflows import get_workflow
from taskqueue.workflows import Builder
from tests.engine.steps import HOUR, another_connection, claim_one, end
from tests.engine.test_record_races import IS_WAITING
from tests.sample.tasks import add, echo
from tests.worker_process import wait_until
from tests.workflows.steps_of import assert_settled, finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="tests.deepest")
def deepest(wf: Builder) -> None:
    wf.step(add.s(1, 1) | add.s(1), name="all")


@workflow(name="tests.middle")
def middle(wf: Builder) -> None:
    first = wf.step(add.s(1, 1), name="first")
    wf.step(deepest.s(), after=first, name="deepest")


@workflow(name="tests.outermost", deadline=timedelta(hours=1))
def outermost(wf: Builder) -> None:
    inner = wf.step(middle.s(), name="middle")
    wf.step(echo.si(), after=inner, name="last")


def in_thread(call: Callable[[], Any]) -> tuple[Thread, int]:
    """Call it in a thread with a session of its own; the thread, and the session's process."""
    pids: Queue[int] = Queue()

    def run() -> None:
        try:
            pids.put(fetch(connection, "SELECT pg_backend_pid()")[0][0])
            call()
        finally:
            connections.close_all()

    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread, pids.get(timeout=60)


@pytest.mark.postgresql_only
def test_a_child_that_begins_while_its_workflow_is_paused_is_paused_too() -> None:
    run = outermost.enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value="2")
    rounds.fold(connection, Step.objects.filter(name="first").values_list("id", flat=True))
    child = Workflow.objects.get(name="tests.middle")
    with another_connection() as other, another_connection() as watcher:
        with orm_transaction(other):
            locked = lock_workflows(other, [child.id])
            assert locked is not None
            Advance(other, locked.workflows, now=locked.now).run(locked.due)
            pausing, pid = in_thread(run.pause)
            assert wait_until(lambda: fetch(watcher, IS_WAITING, (pid,))[0][0])
        pausing.join(60)
    assert not pausing.is_alive()
    assert Workflow.objects.exclude(paused_at=None).count() == 3
    task = claim_one()  # It was released before the pause.
    end(task, OutcomeKind.SUCCEEDED, return_value="2")
    finish(run)
    assert Task.objects.filter(status="blocked", step__workflow__name="tests.deepest").count() == 1

    run.resume()
    assert not Workflow.objects.exclude(paused_at=None).exists()
    assert finish(run).status == "succeeded"
    assert_settled(run)


def test_a_child_that_was_paused_by_itself_stays_so() -> None:
    run = outermost.enqueue()
    child = Workflow.objects.get(name="tests.middle")
    get_workflow(child.id).pause()
    run.pause()
    run.resume()
    child.refresh_from_db()
    assert child.paused_at is not None
    finish(run)
    assert not Workflow.objects.filter(name="tests.deepest").exists()
    get_workflow(child.id).resume()
    assert finish(run).status == "succeeded"


def test_a_second_pause_replaces_the_first_in_children_too() -> None:
    run = outermost.enqueue()
    child = Workflow.objects.get(name="tests.middle")
    run.pause("lunch", by="ann")
    first = Workflow.objects.get(id=run.id).paused_at
    run.pause("holiday", by="bob")
    moments = set(Workflow.objects.values_list("paused_at", flat=True))
    assert len(moments) == 1
    assert moments != {first}
    child.refresh_from_db()
    for row in (Workflow.objects.get(id=run.id), child):
        [reason] = [each for each in why_workflow(row) if each.code == "workflow_paused"]
        assert reason.sentence.endswith(", by bob: holiday")
    run.resume()
    assert not Workflow.objects.exclude(paused_at=None).exists()
    assert finish(run).status == "succeeded"


def test_a_workflow_that_is_not_paused_cannot_be_resumed() -> None:
    run = outermost.enqueue()
    with pytest.raises(TransitionRefused, match=f"Workflow {run.id} is not paused"):
        run.resume()
    assert not Audit.objects.filter(verb="resume").exists()


def test_the_deadline_of_a_paused_workflow_stops_it() -> None:
    run = outermost.enqueue()
    run.pause()
    now = timezone.now()
    Workflow.objects.update(created_at=now - HOUR, deadline_at=now)
    finish(run)
    assert run.status == "failed"
    assert run.error is not None
    assert run.error["error_class"] == "taskqueue.exceptions.DeadlineExceeded"
    assert statuses(run) == {"middle": "cancelled", "last": "cancelled"}
    assert not Workflow.objects.filter(finished_at=None).exists()
    assert not Task.objects.filter(finished_at=None).exists()

    run.retry()
    assert finish(run).status == "succeeded"
    assert_settled(run)
