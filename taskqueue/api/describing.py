"""Descriptions of addresses for the OpenAPI schema, which drf-spectacular generates.

Without drf-spectacular, which the extra `api` brings, the API is the same and has no schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from rest_framework import serializers

from taskqueue.api.access import NeedsOrToken
from taskqueue.api.fields import Anything, Strict, Text, When
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.models.occurrence import OccurrenceStatus
from taskqueue.models.operation import OperationStatus

try:
    from drf_spectacular.openapi import AutoSchema
    from drf_spectacular.plumbing import ResolvedComponent, append_meta
    from drf_spectacular.utils import (
        OpenApiParameter,
        OpenApiResponse,
        extend_schema,
        extend_schema_field,
    )

    HAS_SCHEMA = True
except ImportError:  # pragma: no cover
    from rest_framework.schemas import DefaultSchema as AutoSchema  # type: ignore[assignment]

    HAS_SCHEMA = False

F = TypeVar("F", bound=Callable[..., Any])
MEANINGS = {
    304: "The client's copy is current.",
    400: "The request is malformed: the body is not JSON, or the query parameters are invalid.",
    401: "Authentication is missing or invalid.",
    403: "You lack the permission.",
    404: "It does not exist.",
    409: "The current state does not allow it.",
    411: "The length of the body is unknown: send Content-Length.",
    412: "It has changed since the client has seen it: If-Match does not match.",
    413: "The body is too large.",
    415: "The body is not `application/json`.",
    422: "The body is JSON, but invalid or impossible to carry out.",
    429: "Too many requests: see Retry-After.",
    501: "A required package is not installed on this server.",
    503: "The database does not answer, or is busy.",
}
ALWAYS = (400, 401, 403, 429, 503)
CHANGING = ("POST", "PATCH", "PUT", "DELETE")
NAMED = {
    tuple(member.value for member in choice): choice.__name__
    for choice in (TaskStatus, LeaseStatus, OperationStatus, OccurrenceStatus)
}
"""Names of enums in the schema: several fields called `status` have different choices."""
TOKEN = "metricsToken"  # noqa: S105  (a name)


if HAS_SCHEMA:
    extend_schema_field(
        {"oneOf": [{"type": "string", "format": "date-time"}, {"type": "number", "minimum": 0}]}
    )(When)


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


class Described(AutoSchema):
    """Generates the schema of this API's views, whatever the project's default is."""

    view: Any

    def get_tags(self) -> list[str]:
        """Return the heading."""
        return [self.view.tag]

    def get_summary(self) -> str:
        """Return the first sentence of the description."""
        text = " ".join(str(self.get_description()).split())
        return re.split(r"(?<=[.;:]) ", text, maxsplit=1)[0].rstrip(".;:")

    def get_override_parameters(self) -> list[Any]:
        """Return the parameters, with the headers of the requests and of their answers."""
        parameters = list(super().get_override_parameters())
        if "{task_id}" in self.path:
            parameters.append(OpenApiParameter("task_id", UUID, OpenApiParameter.PATH))
        if self.method in CHANGING:
            parameters.append(
                _header(
                    "Idempotency-Key", "A repeated request with this key is not carried out again."
                )
            )
            if self.view.is_conditional:
                parameters.append(
                    _header("If-Match", "The ETag of the version that the client has seen.")
                )
        elif self.view.has_etag:
            parameters.append(_header("If-None-Match", "The ETag of the client's copy."))
        if self.view.has_etag:
            parameters.append(_header("ETag", "The version of the answer.", on=[200, 201, 304]))
        if self.method == "POST":
            parameters.append(
                _header("Location", "The address of the resource.", on=self.view.located)
            )
        if self.view.throttle_classes:
            parameters.append(
                _header("Retry-After", "Seconds after which to retry.", on=[429, 503])
            )
        parameters.append(_header("WWW-Authenticate", "How to authenticate.", on=[401]))
        return parameters

    def get_auth(self) -> Any:
        """Return the authentication schemes; metrics accept a token too."""
        schemes = super().get_auth()
        if NeedsOrToken in self.view.permission_classes:
            self.registry.register_on_missing(_token_scheme())
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
        if isinstance(field, serializers.ChoiceField) and tuple(field.choices) in NAMED:
            return self._named(field)
        return super()._map_serializer_field(field, direction, *more)  # type: ignore[no-untyped-call]

    def _named(self, field: serializers.ChoiceField) -> Any:
        """Return a reference to a named enum, whatever the name of the field."""
        values = tuple(field.choices)
        component = ResolvedComponent(  # type: ignore[no-untyped-call]
            name=NAMED[values],
            type=ResolvedComponent.SCHEMA,
            schema={"type": "string", "enum": list(values)},
            object=NAMED[values],
        )
        self.registry.register_on_missing(component)
        meta: dict[str, Any] = {"description": str(field.help_text)} if field.help_text else {}
        if field.allow_null:
            meta["nullable"] = True
        return append_meta(component.ref, meta)

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema: Any = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        is_strict = isinstance(serializer, Strict)
        return {**schema, "additionalProperties": False} if is_strict else schema


def _token_scheme() -> Any:
    """Return the scheme of the token, for this API's document or the project's."""
    return ResolvedComponent(  # type: ignore[no-untyped-call]
        name=TOKEN,
        type=ResolvedComponent.SECURITY_SCHEMA,
        schema={"type": "http", "scheme": "bearer"},
        object=TOKEN,
    )


def _header(name: str, meaning: str, *, on: Sequence[int] = ()) -> Any:
    """Return a header of requests, or of the answers with these statuses."""
    return OpenApiParameter(
        name, str, OpenApiParameter.HEADER, description=meaning, response=list(on) or False
    )


def describe(
    operation_id: str,
    *,
    answers: Mapping[int, Any],
    body: Any = None,
    query: type[serializers.Serializer[Any]] | None = None,
    problems: tuple[int, ...] = (),
    always: tuple[int, ...] = ALWAYS,
    media_type: str = "application/json",
) -> Callable[[F], F]:
    """Describe a method of a view; its docstring becomes the text.

    `answers` holds serializers by status, None for an answer without a body; `problems` names the
    statuses of errors beyond those that every address has, `always`.
    """

    def decorate(method: F) -> F:
        if not HAS_SCHEMA:
            return method
        responses: dict[Any, Any] = {
            (status, media_type): OpenApiResponse(
                description=MEANINGS.get(status, "Done."), response=shown
            )
            for status, shown in answers.items()
        }
        has_body = (411, 413, 415, 422) if body is not None else ()
        for status in sorted({*always, *has_body, *problems}):
            responses[status, "application/problem+json"] = OpenApiResponse(
                description=MEANINGS[status], response=ProblemDetails
            )
        extend = extend_schema(
            operation_id=operation_id,
            request=body,
            responses=responses,
            parameters=[query] if query else None,
        )
        # Else it would be made from the schema that is the project's default.
        method.__dict__["kwargs"] = {"schema": Described}
        return extend(method)

    return decorate
