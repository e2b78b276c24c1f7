"""Descriptions of addresses for the OpenAPI schema, which drf-spectacular generates.

Without drf-spectacular, which the extra `api` brings, the API is the same and has no schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from rest_framework import serializers

from taskqueue.api.access import NeedsOrToken
from taskqueue.api.fields import Anything, DescribedField, NoQuery, OneOf, Strict, Text
from taskqueue.core.alerts import AlertKind, AlertScope
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.core.workflow_states import After, OnFailure, StepKind, StepStatus, WorkflowStatus
from taskqueue.models.operation import OperationStatus
from taskqueue.models.schedule import OccurrenceStatus
from taskqueue.monitoring.read_models.base import json_fields_of

try:
    from drf_spectacular.openapi import AutoSchema
    from drf_spectacular.plumbing import ResolvedComponent, append_meta
    from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

    HAS_SCHEMA = True
except ImportError:  # pragma: no cover
    from rest_framework.schemas import DefaultSchema as AutoSchema  # type: ignore[assignment]

    HAS_SCHEMA = False

MEANINGS = {
    304: "The client's copy is current.",
    400: "The request is malformed: the body is not JSON, or the query parameters are invalid.",
    401: "Authentication is missing or invalid.",
    403: "You lack the permission.",
    404: "It does not exist.",
    409: "The current state does not allow it.",
    410: "What was asked for is no longer kept: read on with `after` one less than `oldest`.",
    411: "The length of the body is unknown: send Content-Length.",
    412: "It has changed since the client has seen it: If-Match does not match.",
    413: "The body is too large.",
    415: "The body is not `application/json`.",
    422: "The body is JSON, but invalid or impossible to carry out.",
    429: "Too many requests: see Retry-After.",
    501: "This server cannot do it: a package is not installed, or it does not run under ASGI.",
    503: "The database does not answer, or is busy.",
}
# Statuses of all views but the public probes.
PROTECTED = (401, 403, 429, 503)
HEADERS = {
    "Idempotency-Key": "A repeated request with this key is not carried out again.",
    "If-Match": "The ETag of the version that the client has seen.",
    "If-None-Match": "The ETag of the client's copy.",
    "ETag": "The version of the answer.",
    "Location": "The address of the resource.",
    "Retry-After": "Seconds after which to retry.",
    "WWW-Authenticate": "How to authenticate.",
}
CHANGING = ("POST", "PATCH", "PUT", "DELETE")
# Names of enums in the schema: several fields called `status` have different choices.
NAMED = {
    tuple(member.value for member in choice): choice.__name__
    for choice in (
        TaskStatus,
        LeaseStatus,
        OperationStatus,
        OccurrenceStatus,
        WorkflowStatus,
        StepStatus,
        StepKind,
        After,
        OnFailure,
        AlertKind,
        AlertScope,
    )
}
TOKEN = "metricsToken"  # noqa: S105  (a name)


class Mistake(serializers.Serializer[Any]):
    """A mistake in a request."""

    pointer = Text(help_text="A JSON pointer to the mistake; empty: the whole request.")
    code = Text()
    detail = Text()


class ProblemDetails(serializers.Serializer[Any]):
    """An error, by RFC 9457."""

    type = Text()
    title = Text()
    status = serializers.IntegerField()
    code = Text(help_text="Identifies the error for programs.")
    detail = Text(help_text="The error in a sentence.")
    instance = Text()
    errors = Mistake(many=True, required=False)  # type: ignore[assignment]
    task_id = serializers.UUIDField(required=False, help_text="The task that holds the unique key.")
    oldest = serializers.IntegerField(required=False, help_text="The first event that is kept.")
    workflow_id = serializers.UUIDField(
        required=False, help_text="The workflow that holds the unique key."
    )


class Described(AutoSchema):
    """Generates the schema of this API's views, whatever the project's default is."""

    view: Any

    @property
    def _endpoint(self) -> Any:
        return getattr(self.view, self.method.lower()).endpoint

    def get_operation_id(self) -> str:
        """Return the name of the operation for generated clients."""
        return str(self._endpoint.operation_id)

    def get_tags(self) -> list[str]:
        """Return the heading."""
        return [self.view.tag]

    def get_summary(self) -> str:
        """Return the first sentence of the description."""
        text = " ".join(str(self.get_description()).split())
        return re.split(r"(?<=[.;:]) ", text, maxsplit=1)[0].rstrip(".;:")

    def get_override_parameters(self) -> list[Any]:
        """Return the parameters, with the headers of the requests and of their answers."""
        query = self._endpoint.query
        parameters: list[Any] = [] if query is NoQuery else [query]
        if "{task_id}" in self.path:
            parameters.append(OpenApiParameter("task_id", UUID, OpenApiParameter.PATH))
        is_change, has_etag = self.method in CHANGING, self.view.has_etag
        # The statuses of the answers that have it, or whether requests have it.
        headers: dict[str, Any] = {
            "Idempotency-Key": is_change,
            "If-Match": is_change and self.view.is_conditional,
            "If-None-Match": has_etag and not is_change,
            "ETag": has_etag and [200, 201, 304],
            "Location": self.method == "POST" and list(self.view.located),
            "Retry-After": self.view.throttle_classes and [429, 503],
            "WWW-Authenticate": [401],
        }
        for name, on in headers.items():
            if on:
                header = OpenApiParameter(name, str, OpenApiParameter.HEADER)
                header.description, header.response = HEADERS[name], on is not True and on
                parameters.append(header)
        return parameters

    def get_request_serializer(self) -> Any:
        """Return the body."""
        return self._endpoint.body

    def get_response_serializers(self) -> Any:
        """Return the answers, and the problems by RFC 9457."""
        endpoint = self._endpoint
        responses: dict[Any, Any] = {}
        shown: Any
        for answer, shown in endpoint.answers.items():
            media_type = "text/plain" if shown is str else "application/json"
            status, media_type = answer if isinstance(answer, tuple) else (answer, media_type)
            responses[status, media_type] = OpenApiResponse(
                description=MEANINGS.get(status, "Done."),
                response=serializer_for(shown) if is_dataclass(shown) else shown,  # type: ignore[arg-type]
            )
        problems = {400, *endpoint.problems, *(PROTECTED if self.view.throttle_classes else ())}
        if endpoint.body is not None:
            problems |= {411, 413, 415, 422}
        for status in sorted(problems):
            responses[status, "application/problem+json"] = OpenApiResponse(
                description=MEANINGS[status], response=ProblemDetails
            )
        return responses

    def get_auth(self) -> Any:
        """Return the authentication schemes; metrics accept a token too."""
        schemes = super().get_auth()
        if NeedsOrToken in self.view.permission_classes:
            bearer = {"type": "http", "scheme": "bearer"}
            self._registered(TOKEN, ResolvedComponent.SECURITY_SCHEMA, bearer)
            schemes = [*schemes, {TOKEN: []}]
        return schemes

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        if self.method == "GET" and self.view.has_etag:
            shown: Any = self._get_response_for_code(None, "304", direction=direction)  # type: ignore[no-untyped-call]
            bodies["304"] = {**shown, "description": MEANINGS[304]}
        return bodies

    def _map_serializer_field(self, field: Any, direction: Any, *more: Any) -> Any:
        if isinstance(field, Anything):  # null is among anything, and not one more of two schemas.
            return {"description": str(field.help_text)} if field.help_text else {}
        if isinstance(field, DescribedField):
            schema: Any = deepcopy(field.json_schema)
        elif isinstance(field, OneOf):
            schema = {"oneOf": []}
            for part in field.by_type.values():
                schema["oneOf"].append(self._map_serializer_field(part, direction))
                self._insert_field_validators(part, schema["oneOf"][-1])  # type: ignore[no-untyped-call]
        elif isinstance(field, serializers.ChoiceField) and tuple(field.choices) in NAMED:
            values = tuple(field.choices)
            enum = {"type": "string", "enum": list(values)}
            schema = self._registered(NAMED[values], ResolvedComponent.SCHEMA, enum).ref
        else:
            return super()._map_serializer_field(field, direction, *more)  # type: ignore[no-untyped-call]
        meta: Any = self._get_serializer_field_meta(field, direction)  # type: ignore[no-untyped-call]
        return append_meta(schema, meta)

    def _registered(self, name: str, kind: str, schema: Any) -> Any:
        """Return a component of the document, for this API's or the project's."""
        component = ResolvedComponent(name=name, type=kind, schema=schema, object=name)  # type: ignore[no-untyped-call]
        self.registry.register_on_missing(component)
        return component

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema: Any = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        is_strict = isinstance(serializer, Strict)
        return {**schema, "additionalProperties": False} if is_strict else schema


AnyField = serializers.Field[Any, Any, Any, Any]
NOTHING: Mapping[str, Any] = {}
PLAIN: dict[Any, type[AnyField]] = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    bool: serializers.BooleanField,
    datetime: serializers.DateTimeField,
    timedelta: serializers.FloatField,
    UUID: serializers.UUIDField,
}
_MADE: dict[tuple[type[Any], frozenset[str]], type[serializers.Serializer[Any]]] = {}


def serializer_for(
    model: type[Any],
    *,
    optional: frozenset[str] = frozenset(),
    described: Mapping[str, type[AnyField]] = NOTHING,
) -> type[serializers.Serializer[Any]]:
    """Make the serializer of a read model.

    `optional` fields may be missing in what it shows; `described` names fields of DRF that have a
    schema of their own.
    """
    if (model, optional) in _MADE:
        return _MADE[model, optional]
    hints = get_type_hints(model)
    members: dict[str, Any] = {"__doc__": model.__doc__}
    for name, field in json_fields_of(model).items():
        options: dict[str, Any] = {"required": False} if name in optional else {}
        if name in described:
            options["own"] = described[name]
        members[name] = _field(hints[name], field.metadata, **options)
    made = type(model.__name__.removeprefix("Shown"), (serializers.Serializer,), members)
    _MADE[model, optional] = made
    return made


def _field(
    hint: Any, metadata: Mapping[str, Any], own: type[AnyField] | None = None, **options: Any
) -> AnyField:
    if text := metadata.get("help_text"):
        options["help_text"] = text
    if isinstance(hint, UnionType):
        (hint,) = set(get_args(hint)) - {NoneType}
        options["allow_null"] = True
    origin, arguments = get_origin(hint), get_args(hint)
    if own is not None:
        return own(**options)
    if is_dataclass(hint):
        return serializer_for(hint)(**options)  # type: ignore[arg-type]
    if origin is list and is_dataclass(arguments[0]):
        return serializer_for(arguments[0])(many=True, **options)  # type: ignore[arg-type]
    choices = {"choices": metadata["choices"]} if metadata.get("choices") else {}
    if origin is list:
        return serializers.ListField(child=_item(arguments[0], choices), **options)
    if origin is dict:
        return serializers.DictField(child=_item(arguments[1], {}), **options)
    if hint is Any:
        return _item(hint, options)
    if choices:
        return serializers.ChoiceField(**choices, **options)
    return PLAIN[hint](**options)


def _item(hint: Any, options: Mapping[str, Any]) -> AnyField:
    return Anything(allow_null=True, **options) if hint is Any else _field(hint, options)
