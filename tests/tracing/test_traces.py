"""A trace goes from a request over tasks in worker processes to their statements."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path
from opentelemetry import trace

from taskqueue import Fixed, chord, schedules, webhooks
from taskqueue.declarations import handlers
from taskqueue.engine.connections import project_connection
from taskqueue.engine.webhooks.deliveries import insert_deliveries
from taskqueue.engine.webhooks.messages import Message
from taskqueue.events import on
from taskqueue.models import Task, TaskLog, Worker
from taskqueue.rules import Every
from taskqueue.tracing.metadata import trace_id_of
from taskqueue.tracing.spans import Tracing
from taskqueue.worker.bodies.event_spans import spans_of_event
from taskqueue.worker.bodies.step_facts import SPAN_LOGGER
from tests.sample import traced_tasks
from tests.sample.event_tasks import keep_event
from tests.sample.traced_tasks import part, whole
from tests.tracing.conftest import Elsewhere, Own
from tests.tracing.spans import below, named

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
CANARY = "canary-9e1b6c22f4d7-in-arguments"
TRACER = trace.get_tracer("web")


def checkout(request: HttpRequest) -> HttpResponse:
    with TRACER.start_as_current_span("GET /checkout", kind=trace.SpanKind.SERVER):
        traced_tasks.order.enqueue(CANARY)
    return HttpResponse("thank you")


urlpatterns = [path("checkout/", checkout)]


@pytest.mark.parametrize("pool", ["process", "thread"])
@override_settings(ROOT_URLCONF=__name__)
def test_a_trace_leads_from_a_request_over_three_tasks_to_their_statements(
    own: Own, elsewhere: Elsewhere, pool: str
) -> None:
    assert Client().get("/checkout/").content == b"thank you"
    sent, ran = own(), elsewhere("--pool", pool)
    request = named(sent, "GET /checkout")
    send = named(sent, "send default")
    spans = [*sent, *ran]
    assert {span.trace_id for span in spans} == {request.trace_id}
    assert (send.parent_id, send.kind) == (request.span_id, "PRODUCER")

    name = "process tests.sample.traced_tasks."
    parent = send
    for each in ("order", "charge", "ship"):
        span = named(ran, name + each)
        assert (span.parent_id, span.kind) == (parent.span_id, "CONSUMER")
        inner = below(ran, span)
        inserts = [one for one in inner if "sample_effect" in str(one.attributes)]
        assert [one.name for one in inserts] == ["INSERT"]
        parent = next((one for one in inner if one.name == "send default"), parent)
    assert CANARY not in "".join(span.text for span in spans)


def test_spans_have_the_attributes_of_messaging_and_of_the_attempt(
    own: Own, elsewhere: Elsewhere
) -> None:
    task = traced_tasks.ship.using(queue_name="mail").enqueue(CANARY)
    (send,) = own()
    assert send.attributes == {
        "messaging.system": "taskqueue",
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(task.id),
        "taskqueue.task.name": "tests.sample.traced_tasks.ship",
        "taskqueue.created": True,
    }
    process = named(elsewhere("--name", "paris"), "process tests.sample.traced_tasks.ship")
    waited = process.attributes.pop("taskqueue.wait_seconds")
    assert 0 <= waited < 600
    assert process.attributes == {
        "messaging.system": "taskqueue",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(task.id),
        "taskqueue.task.name": "tests.sample.traced_tasks.ship",
        "taskqueue.attempt": 1,
        "taskqueue.worker": "paris",
        "taskqueue.outcome": "succeeded",
    }


def test_the_parent_of_a_worker_has_no_spans(own: Own, elsewhere: Elsewhere) -> None:
    traced_tasks.ship.enqueue(CANARY)
    ran = elsewhere()
    assert ran
    assert Worker.objects.get().pid not in {span.pid for span in ran}
    assert os.getpid() not in {span.pid for span in ran}


@pytest.mark.parametrize("pool", ["process", "thread"])
@pytest.mark.parametrize("body", [traced_tasks.order_async, traced_tasks.share])
def test_a_body_on_an_event_loop_enqueues_within_its_trace(
    body: Any, own: Own, elsewhere: Elsewhere, pool: str
) -> None:
    tasks = [body.enqueue(CANARY) for _ in range(3)]
    sends = {span.attributes["messaging.message.id"]: span for span in own()}
    ran = elsewhere("--pool", pool)
    for task in tasks:
        own_spans = [span for span in ran if span.trace_id == sends[str(task.id)].trace_id]
        first = named(own_spans, f"process {body.name}")
        last = named(own_spans, "process tests.sample.traced_tasks.ship")
        assert first.parent_id == sends[str(task.id)].span_id
        assert last.parent_id == named(own_spans, "send default").span_id
        assert named(own_spans, "send default").parent_id == first.span_id


def test_many_tasks_of_one_call_have_one_span(own: Own, elsewhere: Elsewhere) -> None:
    traced_tasks.part.enqueue_many([((number,), {}) for number in range(5)])
    (send,) = own()
    assert send.attributes["messaging.batch.message_count"] == 5
    ran = elsewhere()
    assert len(below(ran, send)) == 5
    assert {span.name for span in below(ran, send)} == {"process tests.sample.traced_tasks.part"}


def test_a_fan_in_is_linked_to_the_spans_before_it(own: Own, elsewhere: Elsewhere) -> None:
    run = chord([part.s(1), part.s(2), part.s(3)], whole.s()).enqueue()
    (send,) = own()
    assert send.attributes["taskqueue.workflow.id"] == str(run.id)
    ran = elsewhere()
    parts = [span for span in ran if span.name.endswith(".part")]
    assert {span.parent_id for span in parts} == {send.span_id}
    reduce = named(ran, "process tests.sample.traced_tasks.whole")
    assert reduce.parent_id == send.span_id
    assert sorted(reduce.links) == sorted(span.span_id for span in parts)
    assert reduce.attributes["taskqueue.workflow.id"] == str(run.id)
    assert reduce.attributes["taskqueue.step"] in run.steps
    # Where nobody waits for a step, it says nothing of its span.
    assert TaskLog.objects.filter(logger=SPAN_LOGGER).count() == 3


def test_a_task_that_is_retried_with_other_arguments_is_linked_to_the_first(
    own: Own, elsewhere: Elsewhere
) -> None:
    task = traced_tasks.refuse.enqueue("why")
    (send,) = own()
    elsewhere()
    with TRACER.start_as_current_span("POST /retry") as request:
        task.retry(args=["other"])
    context = request.get_span_context()
    ran = elsewhere()
    second = next(
        span
        for span in ran
        if span.name == "process tests.sample.traced_tasks.refuse" and span.links
    )
    assert second.links == [send.span_id]
    assert second.trace_id == f"{context.trace_id:032x}" != send.trace_id


def test_a_run_of_a_schedule_begins_a_trace(own: Own, elsewhere: Elsewhere) -> None:
    schedules.create("nightly", task=traced_tasks.part, args=[1], rule=Every(3600))
    schedules.run_now("nightly")
    run = named(elsewhere(), "process tests.sample.traced_tasks.part")
    assert run.parent_id is None
    assert run.attributes["taskqueue.schedule"] == "nightly"


def test_a_failure_is_recorded_and_told_without_message_if_arguments_are_sensitive(
    own: Own, elsewhere: Elsewhere
) -> None:
    traced_tasks.refuse.enqueue("of no use")
    traced_tasks.sign_in.enqueue(CANARY)
    ran = elsewhere()
    told = named(ran, "process tests.sample.traced_tasks.refuse")
    assert (told.status, told.attributes["taskqueue.outcome"]) == ("ERROR", "failed")
    (event,) = told.events
    assert event["attributes"]["exception.type"] == "builtins.ValueError"
    assert event["attributes"]["exception.message"] == "refused: of no use"
    assert "traced_tasks.py" in event["attributes"]["exception.stacktrace"]
    hidden = named(ran, "process tests.sample.traced_tasks.sign_in")
    (event,) = hidden.events
    assert event["attributes"]["exception.type"] == "builtins.ValueError"
    assert "exception.message" not in event["attributes"]
    assert "traced_tasks.py" in event["attributes"]["exception.stacktrace"]
    assert CANARY not in "".join(span.text for span in ran)


def test_an_exception_that_cannot_be_shown_fails_its_span_all_the_same(own: Own) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    with trace.get_tracer("test").start_as_current_span("odd") as span:
        Tracing().note_error(span, Odd(), shows_message=True)
    told = named(own(), "odd")
    assert told.status == "ERROR"
    (event,) = told.events
    assert event["attributes"]["exception.message"] == "<the message raised RuntimeError>"
    assert "Odd" in event["attributes"]["exception.stacktrace"]


def test_an_attempt_after_a_killed_one_says_so(
    own: Own, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    traced_tasks.die_once.enqueue(str(tmp_path / "pid"))
    ran = elsewhere()
    killed = int((tmp_path / "pid").read_text())
    assert killed not in {span.pid for span in ran}
    (second,) = (span for span in ran if span.name.endswith(".die_once"))
    assert second.attributes["taskqueue.attempt"] == 2
    (event,) = second.events
    assert event["name"] == "taskqueue.attempts.lost"
    assert event["attributes"] == {"taskqueue.crashes": 1}


def test_each_attempt_has_a_span_of_its_own(own: Own, elsewhere: Elsewhere) -> None:
    traced_tasks.refuse.using(max_attempts=3, backoff=Fixed(0)).enqueue("thrice")
    (send,) = own()
    attempts = below(elsewhere(), send)
    assert sorted(span.attributes["taskqueue.attempt"] for span in attempts) == [1, 2, 3]
    assert trace_id_of(Task.objects.get().metadata) == send.trace_id


def test_a_delivery_is_linked_to_the_span_that_enqueued_what_it_tells_of(
    own: Own, elsewhere: Elsewhere
) -> None:
    # It wants nothing that happens here: what is delivered is inserted below.
    endpoint = webhooks.create("https://hooks.invalid/", kinds=["workflow.failed"]).endpoint
    task = traced_tasks.ship.using(run_after=3600).enqueue(CANARY)
    (send,) = own()
    data = {"id": str(task.id), "name": task.name}
    message = Message(kind="task.enqueued", timestamp="2026-11-25T00:00:00Z", data=data, seq=1)
    insert_deliveries(project_connection(), [(endpoint.pk, message)])
    span = named(elsewhere(), "process taskqueue.webhooks.deliver")
    assert span.links == [send.span_id]
    assert span.trace_id != send.trace_id


def test_a_task_of_a_handler_is_linked_to_the_span_that_enqueued_what_it_tells_of(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "_handlers", {})
    on("task.*")(keep_event)
    task, run = part.enqueue(1), chord([part.s(1), part.s(2)], whole.s()).enqueue()
    sent = {span.attributes.get("messaging.message.id", "run"): span for span in own()}

    def links(**about: Any) -> list[str]:
        event = {"task": None, "workflow": None, **about}
        return [each[36:52] for each in spans_of_event(keep_event.name, json.dumps([event]), "{}")]

    assert links(task=str(task.id)) == [sent[str(task.id)].span_id]
    assert links(workflow=str(run.id)) == [sent["run"].span_id]
    assert links() == links(task=str(UUID(int=0))) == []
    assert spans_of_event(part.name, "[1]", "{}") == []
