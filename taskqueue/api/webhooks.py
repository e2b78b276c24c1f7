"""Webhooks: endpoints, their deliveries, and the verbs on both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import webhooks
from taskqueue.access.permissions import MANAGE_WEBHOOKS, VIEW_ARGUMENTS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Moment, Reasoned, Text
from taskqueue.api.problems import forbidden
from taskqueue.api.views import (
    Digits,
    OneView,
    Paged,
    act_view,
    page,
    page_of,
    rows_after,
)
from taskqueue.core.webhook_targets import LONGEST_URL
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.webhooks.checking import LONGEST_PATTERN, MOST_PATTERNS, reveals
from taskqueue.engine.webhooks.deliveries import get_delivery
from taskqueue.engine.webhooks.verbs import WEBHOOK_VERBS
from taskqueue.exceptions import DeliveryDoesNotExist
from taskqueue.models import Delivery, Endpoint
from taskqueue.models.webhook import LONGEST_DESCRIPTION, DeliveryStatus, Include
from taskqueue.monitoring.read_models.base import about, from_row, json_form
from taskqueue.monitoring.read_models.operation import OperationDetails, operation_details
from taskqueue.monitoring.read_models.webhook import (
    ShownDelivery,
    ShownEndpoint,
    delivery_rows,
    endpoint_rows,
    shown_deliveries,
    shown_endpoints,
)

Endpoints = page_of(ShownEndpoint, "Endpoints by id.")
Deliveries = page_of(ShownDelivery, "Deliveries, the newest first.")


@dataclass(frozen=True, kw_only=True)
class EndpointWithSecret(ShownEndpoint):
    """An endpoint with the secret that was made for it."""

    secret: str | None = about(
        "Shown once; null where a repeated request is answered by its Idempotency-Key."
    )


def _patterns(help_text: str) -> serializers.ListField:
    return serializers.ListField(
        child=Text(max_length=LONGEST_PATTERN),
        required=False,
        max_length=MOST_PATTERNS,
        help_text=help_text,
    )


class EndpointEdited(Reasoned):
    """The changes; fields that are left out keep their values."""

    url = Text(required=False, max_length=LONGEST_URL, help_text="https, on port 443 or 8443.")
    description = Text(required=False, allow_blank=True, max_length=LONGEST_DESCRIPTION)
    kinds = _patterns("Patterns of kinds of events, such as `task.failed` or `task.*`; none: all.")
    names = _patterns("Patterns of names of tasks and workflows, such as `shop.*`; none: all.")
    queues = _patterns("Patterns of names of queues; none: all.")
    include = serializers.ListField(
        child=serializers.ChoiceField(choices=list(Include)),
        required=False,
        help_text="`error` adds its class and message, and needs view_arguments.",
    )


class EndpointCreated(EndpointEdited):
    """A new endpoint."""

    url = Text(max_length=LONGEST_URL, help_text="https, on port 443 or 8443.")


class Since(Reasoned):
    """From when on."""

    since = Moment(help_text="Events since this time, as far as they are kept.")


class DeliveryQuery(Paged):
    """The filter of deliveries."""

    status = serializers.ChoiceField(
        required=False, choices=[each.value for each in DeliveryStatus]
    )


class EndpointView(OneView):
    """One endpoint. If-Match compares what people change, not its deliveries."""

    needs = {"GET": (MANAGE_WEBHOOKS,)}
    tag = "webhooks"
    compared = ("pk", "changed_at")
    answers = {200: ShownEndpoint}

    def find(self, key: str) -> Endpoint:
        return webhooks.get(key)

    def details(self, found: Endpoint) -> ShownEndpoint:
        (shown,) = shown_endpoints([found])
        return shown

    def check_include(self, row: Endpoint | None = None) -> None:
        """Refuse to send errors somewhere for those who may not see what may stand in them."""
        is_grave = reveals(self.parameters, row)
        if is_grave and not self.request.user.has_perm(VIEW_ARGUMENTS):
            raise forbidden(
                self.request.user, (VIEW_ARGUMENTS,), "Errors may contain values of arguments."
            )

    def with_secret(self, made: webhooks.Secret, *, status: int, **headers: str) -> Response:
        """Answer with an endpoint and its new secret, which is kept nowhere with the answer."""
        shown = self.details(made.endpoint)
        told = from_row(EndpointWithSecret, shown, secret=made.secret)
        response = self.shown(told, status=status, part=self.part(made.endpoint), **headers)
        response["Cache-Control"] = "no-store"
        response.kept_data = {**response.data, "secret": None}  # type: ignore[attr-defined]
        return response


class EndpointList(EndpointView):
    """All endpoints."""

    needs = {"GET": (MANAGE_WEBHOOKS,), "POST": (MANAGE_WEBHOOKS,)}
    is_conditional = False

    @endpoint("listWebhooks", answers={200: Endpoints}, query=Paged)
    def get(self, request: Request) -> Response:
        """Endpoints by id."""
        found = rows_after(endpoint_rows(), "id", self.parameters, Digits().run_validation)
        return page(self, found, "id", shown_endpoints)

    @endpoint("createWebhook", answers={201: EndpointWithSecret}, body=EndpointCreated)
    def post(self, request: Request) -> Response:
        """Create an endpoint; its secret is shown once. It receives events after about a second."""
        self.check_include()

        def act() -> Response:
            made = webhooks.create(by=request.user, **self.parameters)
            address = self.address("webhook", made.endpoint.pk)
            return self.with_secret(made, status=201, Location=address)

        return self.idempotent(act)


class EndpointDetail(EndpointView):
    """Looking at an endpoint, changing and deleting it."""

    needs = dict.fromkeys(("GET", "PATCH", "DELETE"), (MANAGE_WEBHOOKS,))

    @endpoint("getWebhook", answers={200: ShownEndpoint}, problems=(404,))
    def get(self, request: Request, endpoint_id: str) -> Response:
        """Return an endpoint, without its secret."""
        return self.answer(endpoint_id)

    @endpoint(
        "editWebhook", answers={200: ShownEndpoint}, body=EndpointEdited, problems=(404, 409, 412)
    )
    def patch(self, request: Request, endpoint_id: str) -> Response:
        """Change its URL or its events; the change takes effect after about a second."""
        self.check_include(self.find(endpoint_id))
        return self.act(WEBHOOK_VERBS["edit"], endpoint_id, self.check_include, **self.parameters)

    @endpoint("deleteWebhook", answers={204: None}, query=Reasoned, problems=(404, 409, 412))
    def delete(self, request: Request, endpoint_id: str) -> Response:
        """Delete it with its deliveries."""
        return self.act(WEBHOOK_VERBS["delete"], endpoint_id, **self.parameters)


class SecretView(EndpointView):
    """A verb that makes a secret."""

    answers = {200: EndpointWithSecret}

    def outcome(self, verb: Verb, key: str, result: Any) -> Response:
        return self.with_secret(result, status=200)


class TestView(EndpointView):
    """Sends a test."""

    answers = {202: ShownDelivery}

    def outcome(self, verb: Verb, key: str, result: Any) -> Response:
        (shown,) = shown_deliveries([get_delivery(result)])
        return Response(json_form(shown), status=202)


class ReplayView(EndpointView):
    """Sends events again."""

    answers = {202: OperationDetails}
    body = Since
    located = (202,)

    def outcome(self, verb: Verb, key: str, result: Any) -> Response:
        shown = operation_details(result, self.request.user)
        address = self.address("operation", result.id)
        return Response(json_form(shown), status=202, headers={"Location": address})


class DeliveryView(OneView):
    """One delivery of an endpoint."""

    needs = {"GET": (MANAGE_WEBHOOKS,)}
    tag = "webhooks"
    compared = ("pk", "task_id", "status")
    answers = {202: ShownDelivery}

    def find(self, key: str) -> Delivery:
        found = get_delivery(key)
        match = self.request.resolver_match
        if match is None or str(found.endpoint_id) != match.kwargs["endpoint_id"]:
            raise DeliveryDoesNotExist(f"There is no delivery {key}.")
        return found

    def details(self, found: Delivery) -> ShownDelivery:
        (shown,) = shown_deliveries([found])
        return shown

    def run(self, request: Request, key: str) -> Response:
        """Do the verb of this address."""
        self.find(key)
        return super().run(request, key)


class DeliveryList(ApiView):
    """The deliveries of an endpoint."""

    needs = {"GET": (MANAGE_WEBHOOKS,)}
    tag = "webhooks"
    has_etag = True

    @endpoint("listDeliveries", answers={200: Deliveries}, query=DeliveryQuery, problems=(404,))
    def get(self, request: Request, endpoint_id: str) -> Response:
        """Its deliveries and what became of each, the newest first. They are kept for 7 days."""
        rows = delivery_rows(webhooks.get(endpoint_id))
        if "status" in self.parameters:
            rows = rows.filter(status=self.parameters["status"])
        found = rows_after(rows, "-id", self.parameters, UUID)
        return page(self, found, "id", shown_deliveries)


ACTS: dict[str, type[OneView]] = {
    "enable": act_view(EndpointView, WEBHOOK_VERBS["enable"]),
    "disable": act_view(EndpointView, WEBHOOK_VERBS["disable"]),
    "rotate": act_view(SecretView, WEBHOOK_VERBS["rotate"]),
    "test": act_view(TestView, WEBHOOK_VERBS["test"]),
    "replay": act_view(ReplayView, WEBHOOK_VERBS["replay"], body=Since),
}
Redeliver = act_view(DeliveryView, WEBHOOK_VERBS["redeliver"])
