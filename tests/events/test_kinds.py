"""The kinds of events besides those of a task's ordinary way."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from taskqueue.core.event_kinds import ALL_KINDS
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.operations import serving as operations
from taskqueue.engine.operations.asking import cancel_operation, start_operation
from taskqueue.engine.workflows import serving as workflows
from taskqueue.models import Occurrence, Subscription, Worker
from taskqueue.workflows import chain
from tests.engine.steps import claim_one, end
from tests.events.steps import kinds, listen, written
from tests.sample.tasks import noop
from tests.schedules.steps import at, make, serve

pytestmark = pytest.mark.django_db(transaction=True)


def advance() -> None:
    while workflows.serve(connection):
        pass


def test_the_success_cancel_and_retry_of_a_workflow_write_events() -> None:
    listen("workflow.*")
    first = chain(noop.s(), noop.si()).enqueue()
    for _ in range(2):
        end(claim_one(), OutcomeKind.SUCCEEDED)
        advance()
    second = chain(noop.s(), noop.si()).enqueue()
    second.cancel()
    advance()
    second.retry()
    advance()
    assert [(event.kind, event.workflow_id) for event in written()] == [
        ("workflow.started", first.id),
        ("workflow.succeeded", first.id),
        ("workflow.started", second.id),
        ("workflow.cancelled", second.id),
        ("workflow.started", second.id),
    ]
    succeeded = written()[1]
    assert succeeded.details["status"] == "succeeded"
    assert succeeded.details["seconds"] >= 0


def test_skipped_times_of_a_schedule_write_events() -> None:
    listen("schedule.*")
    make(name="hourly", overlap="skip")
    serve(at(1))
    serve(at(2))
    (event,) = written()
    assert (event.kind, event.name) == ("schedule.skipped", "hourly")
    assert event.details == {"count": 1, "nominal_at": at(2).isoformat()}


def test_a_run_that_is_skipped_after_it_has_waited_is_reported() -> None:
    listen("schedule.*")
    make(overlap="queue_one")
    serve(at(1))
    serve(at(2))
    assert Occurrence.objects.filter(status="waiting").update(status="skipped") == 1
    assert kinds() == ["schedule.skipped"]


def test_the_end_or_cancel_of_an_operation_writes_an_event() -> None:
    listen("operation.*")
    noop.enqueue()
    done = start_operation("cancel", TaskFilter(statuses=["ready"]))
    while operations.step(connection):
        pass
    off = start_operation("cancel", TaskFilter(statuses=["ready"]))
    cancel_operation(off.id)
    first, second = written()
    assert (first.kind, first.name) == ("operation.finished", "cancel")
    assert first.details == {"operation": str(done.id), "status": "finished", "done": 1}
    assert second.details == {"operation": str(off.id), "status": "cancelled", "done": 0}


def test_a_worker_that_comes_back_under_its_name_has_started() -> None:
    listen("worker.*")
    now = timezone.now()
    Worker.objects.create(name="w1", host="h", pid=1, started_at=now, seen_at=now)
    Worker.objects.update(incarnation=uuid4(), status="running")
    assert kinds() == ["worker.started", "worker.started"]


def test_whoever_names_no_kind_wants_all() -> None:
    listen()
    assert Subscription.objects.get().kinds == list(ALL_KINDS)
