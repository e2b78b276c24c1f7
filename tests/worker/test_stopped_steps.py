"""A worker starts no task of a workflow that is being stopped, however far the stop has come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue import group, workflow
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.workflows import stopping
from taskqueue.engine.workflows.serving import serve
from taskqueue.models import Lease, Task, Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.worker import stopped_steps, worker_session
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.worker_session import WorkerSession
from taskqueue.workflows import Builder
from tests.engine.steps import end
from tests.sample.tasks import add, echo, noop
from tests.worker.played import PlayedWorker
from tests.worker.played_session import played_session
from tests.workflows.steps_of import assert_settled, finish

pytestmark = pytest.mark.django_db(transaction=True)
WIDTH = 30
STOPPING = "'stopping'"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerSession]:
    """The session of a worker whose turns take as long as they need, and always look."""
    monkeypatch.setattr(worker_session, "STOPPED_TURN", 60.0)
    monkeypatch.setattr(stopped_steps, "LOOK_INTERVAL", 0.0)
    with played_session() as session:
        yield session


def request(session: WorkerSession, want: int) -> Exchange:
    """Claim as the database thread does."""
    exchange = Exchange(want=want)
    session.carry_out(exchange)
    session.leave_stopped(exchange)
    return exchange


def names(exchange: Exchange) -> list[str]:
    return [row.name for row in exchange.claimed]


def settle(run: WorkflowRun, exchange: Exchange) -> None:
    """End what was claimed before the stop, and let the workflow end."""
    for row in exchange.claimed:
        end(row, OutcomeKind.SUCCEEDED, return_value="1")
    finish(run)
    assert run.status == "cancelled"
    assert_settled(run)


def test_a_claim_after_the_cancel_of_a_wide_map_starts_none_of_its_members(
    session: WorkerSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "MOST_STOPPED", 5)
    run = add.starmap((n, 1) for n in range(WIDTH)).enqueue()
    before = request(session, 2)
    assert len(before.claimed) == 2
    run.cancel("enough", by="ada")
    assert Task.objects.filter(status="ready").count() > WIDTH // 2
    noop.enqueue()
    after = request(session, 4)
    # It cancels them until it has found what stands behind them.
    assert names(after) == [noop.name]
    assert not after.is_stopped_left
    members = Task.objects.filter(name=add.name).exclude(id__in=[r.task_id for r in before.claimed])
    assert set(members.values_list("status", "attempt", "started_at", "error_message")) == {
        ("cancelled", 0, None, "enough")
    }
    assert Lease.objects.count() == len(before.claimed) + 1
    settle(run, before)


def test_a_turn_that_has_cancelled_for_long_lets_the_worker_do_other_things_first(
    session: WorkerSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "MOST_STOPPED", 3)
    monkeypatch.setattr(worker_session, "STOPPED_TURN", 0.0)
    run = add.starmap((n, 1) for n in range(WIDTH)).enqueue()
    run.cancel()
    turn = request(session, 2)
    assert (names(turn), turn.is_stopped_left) == ([], True)
    assert Task.objects.filter(status="ready").exists()
    while turn.is_stopped_left:
        turn = request(session, 2)
        assert names(turn) == []
    settle(run, turn)


def test_a_worker_that_was_kept_by_a_stop_claims_again_and_is_not_drained() -> None:
    worker = PlayedWorker()
    claim = worker.next_request()
    assert claim is not None
    claim.is_stopped_left = True
    worker.answer()
    assert worker.timetable.may_claim
    assert not worker.timetable.is_dry


def test_ordinary_claims_ask_nothing_more_while_a_workflow_is_stopped(
    session: WorkerSession,
) -> None:
    Workflow.objects.create(name="stops", format=1, status="stopping")
    add.using(priority=3).enqueue_many([((n, 1), {}) for n in range(4)])
    exchange = Exchange(want=4)
    with CaptureQueriesContext(session.connection) as queries:
        session.carry_out(exchange)
    assert not [query["sql"] for query in queries if "taskqueue_workflow" in query["sql"]]
    with CaptureQueriesContext(session.connection) as queries:
        session.leave_stopped(exchange)
    assert (len(exchange.claimed), len(queries)) == (4, 0)


def test_claims_of_steps_look_now_and_then_while_nothing_is_stopped(
    session: WorkerSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopped_steps, "LOOK_INTERVAL", 60.0)
    run = add.starmap((n, 1) for n in range(WIDTH)).enqueue()
    found: list[Any] = []
    with CaptureQueriesContext(session.connection) as queries:
        for _ in range(5):
            found += request(session, 2).claimed
    looks = [query["sql"] for query in queries if STOPPING in query["sql"]]
    assert (len(found), len(looks)) == (10, 1)
    run.refresh()
    assert run.status == "running"


@workflow(name="tests.stopped_child")
def stopped_child(wf: Builder) -> None:
    wf.step(echo.si(1), name="only")


@workflow(name="tests.stopped_grandparent")
def stopped_parent(wf: Builder) -> None:
    wf.step(stopped_child.s(), name="child")


def test_children_that_the_stop_has_not_reached_start_nothing_either(
    session: WorkerSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "MOST_STOPPED", 1)
    run = group(*[stopped_parent.s() for _ in range(6)]).enqueue()
    other = stopped_child.enqueue()
    run.cancel("enough")
    assert Workflow.objects.filter(status="running").exclude(id=other.id).exists()
    claimed = request(session, 10)
    assert [str(row.task_id) for row in claimed.claimed] == [
        str(Task.objects.get(step__workflow=other.id).id)
    ]
    while serve(connection):
        pass
    run.refresh()
    assert run.status == "cancelled"
    assert_settled(run)
    below = Workflow.objects.exclude(parent_step_id=None)
    assert set(below.values_list("status", flat=True)) == {"cancelled"}
    end(claimed.claimed[0], OutcomeKind.SUCCEEDED, return_value="1")
    assert finish(other).status == "succeeded"


def test_a_task_of_several_workers_that_was_claimed_after_the_cancel_ends_too(
    session: WorkerSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = group(echo.using(workers=2).si(1), add.si(1, 1)).enqueue()
    # The stop has reached none of its tasks.
    with monkeypatch.context() as patch:
        patch.setattr(stopping, "MOST_STOPPED", 0)
        run.cancel("enough")
    assert Task.objects.filter(status="ready").count() == 2
    nothing = request(session, 10)
    assert names(nothing) == []
    assert not Lease.objects.exists()
    settle(run, nothing)
