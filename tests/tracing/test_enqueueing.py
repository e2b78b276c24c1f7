"""What enqueues tell of themselves, and what of it tasks carry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from opentelemetry import baggage, trace
from opentelemetry.context import attach, detach
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

from taskqueue import DuplicateTask, control, tracing
from taskqueue.declarations.checks import check_settings
from taskqueue.models import Task
from taskqueue.tracing.metadata import trace_url_of
from tests.sample import traced_tasks
from tests.sample.tasks import noop
from tests.tracing.conftest import Own

pytestmark = pytest.mark.django_db
TRACER = trace.get_tracer("web")


def test_without_the_setting_a_task_carries_nothing() -> None:
    assert tracing.active is None
    with TRACER.start_as_current_span("GET /"):
        noop.enqueue()
    assert Task.objects.get().metadata == {}


def test_a_task_carries_the_span_and_keeps_its_own_metadata(own: Own) -> None:
    noop.using(metadata={"tenant": "Zoë"}).enqueue()
    (send,) = own()
    metadata = Task.objects.get().metadata
    assert metadata.keys() == {"tenant", "traceparent"}
    assert metadata["tenant"] == "Zoë"
    assert metadata["traceparent"].startswith(f"00-{send.trace_id}-{send.span_id}-")


def test_baggage_is_left_out_for_it_may_be_secret(own: Own) -> None:
    token = attach(baggage.set_baggage("secret", "canary-of-baggage"))
    try:
        noop.enqueue()
    finally:
        detach(token)
    assert "canary" not in json.dumps(Task.objects.get().metadata)


@pytest.mark.parametrize(("size", "is_kept"), [(100, True), (250, False)])
def test_a_trace_state_is_carried_unless_it_is_long(size: int, is_kept: bool, own: Own) -> None:
    state = TraceState([(f"vendor{number}", "v" * size) for number in range(4)])
    remote = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
    token = attach(trace.set_span_in_context(NonRecordingSpan(remote)))
    try:
        noop.enqueue()
    finally:
        detach(token)
    metadata = Task.objects.get().metadata
    assert ("tracestate" in metadata) is is_kept
    assert "traceparent" in metadata


def test_an_enqueue_that_is_refused_is_an_error_without_its_message(own: Own) -> None:
    first = noop.using(unique_key="canary-of-keys")
    first.enqueue()
    with pytest.raises(DuplicateTask):
        first.using(on_duplicate="raise").enqueue()
    refused = own()[-1]
    assert refused.status == "ERROR"
    assert "canary" not in refused.text


def test_an_enqueue_that_finds_a_holder_says_so(own: Own) -> None:
    for _ in range(2):
        noop.using(unique_key="k").enqueue()
    assert [span.attributes["taskqueue.created"] for span in own()] == [True, False]


def test_a_duplicate_is_linked_to_the_trace_of_the_first(own: Own) -> None:
    task = noop.enqueue()
    (send,) = own()
    copy = control.duplicate(task.id)
    parent = Task.objects.get(id=task.id).metadata["traceparent"]
    assert f"{send.trace_id}-{send.span_id}" in parent
    assert Task.objects.get(id=copy).metadata == {"trace_origin": parent}


def test_tracing_costs_an_enqueue_no_statement(own: Own) -> None:
    noop.enqueue()
    with CaptureQueriesContext(connection) as traced:
        noop.enqueue()
    with override_settings(TASKQUEUE={}), CaptureQueriesContext(connection) as untraced:
        noop.enqueue()
    assert len(traced) == len(untraced)


def test_a_link_leads_from_the_task_to_its_trace(
    own: Own, admin_client: Any, settings: Any
) -> None:
    task = traced_tasks.part.enqueue(1)
    (send,) = own()
    settings.TASKQUEUE = {"TRACE_URL": "https://tempo.example/trace/{trace_id}"}
    address = f"https://tempo.example/trace/{send.trace_id}"
    assert admin_client.get(f"/api/v1/tasks/{task.id}/").json()["trace_url"] == address
    page = admin_client.get(f"/admin/taskqueue/task/{task.id}/change/").content.decode()
    assert f'<a href="{address}"' in page


@pytest.mark.parametrize("stored", ["nonsense", 7, None, f"00-{'0' * 32}-{'1' * 16}-01'\"><b>"])
def test_a_trace_that_the_project_has_stored_otherwise_is_not_linked(
    stored: object, settings: Any
) -> None:
    settings.TASKQUEUE = {"TRACE_URL": "https://tempo.example/trace/{trace_id}"}
    assert trace_url_of({"traceparent": stored}) is None


def test_a_check_tells_of_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskqueue.declarations.checks.find_spec", lambda name: None)
    with override_settings(TASKQUEUE={"TRACING": True}):
        assert "taskqueue.E008" in [message.id for message in check_settings()]
    assert "taskqueue.E008" not in [message.id for message in check_settings()]
