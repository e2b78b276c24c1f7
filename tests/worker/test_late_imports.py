"""Modules that a worker imports beside its first tasks: only what needs them waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from taskqueue.models import Step
from taskqueue.worker import late_imports
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.late_imports import LateImports
from taskqueue.worker.workflows import StepEnds
from tests.engine.steps import claim
from tests.sample.tasks import add
from tests.worker.played import NOW, PlayedWorker
from tests.worker.played_session import played_session
from tests.worker_process import wait_until
from tests.workflows.steps_of import assert_settled
from tests.workflows.test_step_ends import recorded


class PlayedImports:
    """Imports that are over when the test says so."""

    have_workflows = False


def played() -> tuple[StepEnds, PlayedImports]:
    imports: Any = PlayedImports()
    return StepEnds(imports), imports


@pytest.fixture
def idle_drain() -> PlayedWorker:
    """A drain that found nothing to claim, and has not served its duties."""
    worker = PlayedWorker(slots=0).rest()
    object.__setattr__(worker.timetable._options, "drain", True)
    worker.dispatcher.pool.ready = [object()]
    worker.timetable.is_dry, worker.timetable.is_promoted = True, False
    worker.timetable.serve_duties_by(0.0)
    return worker


@pytest.mark.django_db(transaction=True)
def test_ends_of_steps_that_are_recorded_meanwhile_are_counted_afterwards() -> None:
    run = add.starmap((n, 1) for n in range(2)).enqueue()
    ends, imports = played()
    exchange = recorded(claim(2))
    ends.take(connection, exchange)
    assert Step.objects.get().ended == 0
    assert exchange.fold_at is not None
    assert exchange.fold_at < float("inf"), "A request comes soon, in case nothing else does."
    imports.have_workflows = True
    later = Exchange()
    wait_until(lambda: ends.take(connection, later) or later.has_released)
    run.refresh()
    assert run.status == "succeeded"
    assert_settled(run)


def test_a_module_that_cannot_be_imported_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late_imports, "WORKFLOWS", "no_such_module_anywhere")
    imports = LateImports()
    wait_until(lambda: imports.have_workflows)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("has_workflow", [True, False])
def test_a_worker_that_starts_beside_workflows_imports_before_its_first_task(
    has_workflow: bool,
) -> None:
    if has_workflow:
        (add.s(1, 1) | add.s(1)).enqueue()
    begun: list[str] = []
    imports: Any = SimpleNamespace(begin=lambda: begun.append("workflows"))
    with played_session() as session:
        thread = DatabaseThread(session, lambda: None, imports=imports)
        thread.send(Exchange(looks_ahead=True))
        wait_until(lambda: thread.report() is not None)
        thread.stop()
    assert begun == ["workflows"] * has_workflow


def test_a_request_comes_for_ends_of_steps_that_wait_to_be_counted() -> None:
    worker = PlayedWorker(slots=0).rest()
    worker.timetable.fold_at = NOW + 0.05
    assert worker.next_request(NOW + 0.04) is None
    request = worker.next_request(NOW + 0.05)
    assert request is not None
    assert request.is_empty
    assert not request.with_duties
    request.fold_at = NOW + 0.1
    worker.answer(now=NOW + 0.06)
    assert worker.next_request(NOW + 0.09) is None
    assert worker.next_request(NOW + 0.1) is not None


def test_duties_that_wait_for_it_are_asked_for_again_and_a_drain_goes_on(
    idle_drain: PlayedWorker,
) -> None:
    duties = idle_drain.next_request()
    assert duties is not None
    assert duties.with_duties
    idle_drain.thread.put_off(NOW + 0.01)
    idle_drain.coordinator.take_in(NOW)
    assert not idle_drain.coordinator.is_drained
    assert idle_drain.next_request(NOW + 0.005) is None
    again = idle_drain.next_request(NOW + 0.01)
    assert again is not None
    assert again.with_duties
    idle_drain.answer(now=NOW + 0.01)
    assert idle_drain.coordinator.is_drained


def test_a_drain_serves_the_duties_that_were_left_to_the_next_turn(
    idle_drain: PlayedWorker,
) -> None:
    duties = idle_drain.next_request()
    assert duties is not None
    duties.are_duties_cut = True
    idle_drain.answer()
    assert not idle_drain.coordinator.is_drained
