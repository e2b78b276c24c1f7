"""A trace goes from a request over the steps of a chain to their statements."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path
from opentelemetry import trace

from taskqueue import chain
from tests.sample.traced_tasks import ship
from tests.tracing.conftest import Elsewhere, Own
from tests.tracing.spans import below, named

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
CANARY = "canary-51f0c3b8a7d2-in-arguments"
TRACER = trace.get_tracer("web")


def checkout(request: HttpRequest) -> HttpResponse:
    with TRACER.start_as_current_span("GET /checkout", kind=trace.SpanKind.SERVER):
        chain(ship.s(CANARY), ship.s(), ship.s()).enqueue()
    return HttpResponse("thank you")


urlpatterns = [path("checkout/", checkout)]


@override_settings(ROOT_URLCONF=__name__)
def test_a_trace_leads_from_a_request_over_the_steps_of_a_chain_to_their_statements(
    own: Own, elsewhere: Elsewhere
) -> None:
    Client().get("/checkout/")
    sent, ran = own(), elsewhere()
    request, send = named(sent, "GET /checkout"), named(sent, "send workflow chain(ship)")
    assert {span.trace_id for span in (*sent, *ran)} == {request.trace_id}
    assert send.parent_id == request.span_id

    steps = {span.attributes["taskqueue.step"]: span for span in below(ran, send)}
    assert steps.keys() == {"ship", "ship-2", "ship-3"}
    for step in steps.values():
        assert (step.name, step.kind) == (f"process {ship.name}", "CONSUMER")
        inserts = [span for span in below(ran, step) if "sample_effect" in str(span.attributes)]
        assert [span.name for span in inserts] == ["INSERT"]
    assert CANARY not in "".join(span.text for span in (*sent, *ran))
