"""The base of all views: authentication, throttles, errors, ETags and idempotent requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError, DataError, InterfaceError, connections
from django.db.transaction import atomic, non_atomic_requests
from django.urls import reverse
from django.utils import translation
from django.utils.module_loading import import_string
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView, set_rollback

from taskqueue.api.access import Needs, Rates
from taskqueue.api.describing import Described
from taskqueue.api.fields import AlwaysJSON, NoQuery, PlainJSONRenderer, StrictJSONParser
from taskqueue.api.headers import answered, etag_of, has_condition, is_known
from taskqueue.api.problems import InvalidBody, InvalidQuery, Problem, answer_to
from taskqueue.conf import get_settings
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.transient_errors import is_passing
from taskqueue.monitoring.read_models.base import json_form

logger = logging.getLogger("taskqueue.api")
# How often an action is tried if the database has a transient error, such as a deadlock.
TRIES = 3
# The address parameter of each kind of resource; queues and workers have a `name` too.
KEYS = {
    "task": "task_id", "operation": "operation_id", "schedule": "name", "workflow": "workflow_id",
    "limit": "name", "webhook": "endpoint_id", "delivery": "delivery_id",
    "search": "search_id",
    "alert": "alert_id", "alert-rule": "name",
}  # fmt: skip


class Endpoint(NamedTuple):
    """The parameters and answers of a view's method, for requests and for the schema."""

    operation_id: str
    answers: Mapping[Any, Any]
    query: type[Serializer[Any]]
    body: type[Serializer[Any]] | None
    problems: Sequence[int]


def endpoint(
    operation_id: str,
    *,
    answers: Mapping[Any, Any],
    query: type[Serializer[Any]] = NoQuery,
    body: type[Serializer[Any]] | None = None,
    problems: Sequence[int] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a method of a view: it finds the validated query or body in `self.parameters`.

    Its docstring becomes the text of the schema. `answers` holds read models, or serializers, by
    status, or by status and media type, None for an answer without a body; `problems` names the
    statuses of errors beyond those that every address has.
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        has_key = len(signature(method).parameters) > 2

        @wraps(method)
        def validated(self: ApiView, request: Request, *key: str) -> Any:
            self.parameters = self.validated_query(query)
            if body is not None:
                self.parameters = self.validated_body(body)
            # The last one: those before it belong to the address where the project mounts the API.
            return method(self, request, *(key[-1:] if has_key else ()))

        declared: Any = validated
        declared.endpoint = Endpoint(operation_id, answers, query, body, problems)
        return validated

    return decorate


class ApiView(APIView):
    """One address; its methods get the name or id in the address, if it has one."""

    # The required permissions of each method.
    needs: Mapping[str, tuple[str, ...]] = {}
    # The throttle scope of requests that change something: see `access.Rates`.
    scope = "act"
    # The heading in the documentation.
    tag = ""
    # Whether its answers have an ETag.
    has_etag = False
    # The statuses of answers with a Location header.
    located: Sequence[int] = (201,)
    # Whether its actions support If-Match.
    is_conditional = False

    authentication_classes: Any = ()
    permission_classes = (Needs,)
    throttle_classes = (Rates,)
    parser_classes = (StrictJSONParser,)
    renderer_classes = (PlainJSONRenderer,)
    content_negotiation_class = AlwaysJSON
    versioning_class = None
    metadata_class = None
    schema = Described()
    parameters: dict[str, Any]

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """Opt out of ATOMIC_REQUESTS, because a wait must not hold a transaction open."""
        view: Any = super().as_view(**initkwargs)
        for alias in connections:
            view = non_atomic_requests(using=alias)(view)
        return view

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Answer in English whatever the browser prefers: only half of each error is translated.

        A method gets only the parameter of its own address: a project may mount the API below an
        address with its own parameters, such as a tenant's name.
        """
        with translation.override("en"):
            return super().dispatch(
                request, *(value for name, value in kwargs.items() if name in KEYS.values())
            )

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return the project's authenticators, or those of the setting API_AUTHENTICATION."""
        paths = get_settings().API_AUTHENTICATION
        classes = self.settings.DEFAULT_AUTHENTICATION_CLASSES
        return [each() for each in (classes if paths is None else map(import_string, paths))]

    def get_authenticate_header(self, request: Request) -> str:
        """Return the header of the first authenticator that has one, because 401 requires one."""
        headers = (each.authenticate_header(request) for each in self.get_authenticators())
        return next(filter(None, headers), 'Session realm="api"')

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, throttle and check permissions; then measure the body."""
        super().initial(request, *args, **kwargs)
        _measure_body(request)

    def perform_authentication(self, request: Request) -> None:
        """Authenticate the user; throttle failures too."""
        try:
            super().perform_authentication(request)
        except DataError:  # PostgreSQL can hold no name with a NUL in it.
            request.user, request.auth = AnonymousUser(), None
            super().check_throttles(request)
            raise exceptions.AuthenticationFailed from None
        except exceptions.AuthenticationFailed:
            super().check_throttles(request)
            raise

    def check_permissions(self, request: Request) -> None:
        """Throttle first, so that refused users cannot ask without limit."""
        super().check_throttles(request)
        super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """Do nothing: `check_permissions` throttles."""

    # Answers

    def handle_exception(self, error: Exception) -> Response:
        """Answer with a problem; raise unexpected errors again."""
        if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
            error.status_code = 401
        answer = answer_to(error, path=self.request.path)
        if answer is None:
            raise error
        set_rollback()
        if answer.status_code == 401:
            answer["WWW-Authenticate"] = self.get_authenticate_header(self.request)
        if (wait := getattr(error, "wait", None)) is not None:
            answer["Retry-After"] = str(max(1, round(wait)))
        if answer.status_code == 503 and not isinstance(error, Problem):
            logger.warning("The database failed error=%s", " ".join(str(error).split()))
            answer["Retry-After"] = "1"
        if isinstance(error, exceptions.MethodNotAllowed):
            answer["Allow"] = ", ".join(self.allowed_methods)
        answer.exception = True
        return answer

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Set the headers of every answer: no shared cache may keep it."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response.setdefault("Cache-Control", "private, no-cache")
        response.setdefault("Content-Language", "en")
        return response

    def shown(self, shown: Any, *, status: int = 200, part: str = "", **headers: str) -> Response:
        """Answer with read models and their ETag, or with 304 if the client has them already.

        The ETag begins with the `part` that If-Match compares.
        """
        value = json_form(shown)
        etag = etag_of(value, part=part)
        if self.request.method in ("GET", "HEAD") and is_known(self.request, etag):
            return Response(status=304, headers={"ETag": etag})
        return Response(value, status=status, headers={**headers, "ETag": etag})

    def address(self, kind: str, *key: Any) -> str:
        """Return the path of a resource, in the mount of the request."""
        match = self.request.resolver_match
        assert match is not None
        mount = {name: value for name, value in match.kwargs.items() if name not in KEYS.values()}
        part = {KEYS[kind]: key[0]} if key else {}
        return reverse(f"{match.namespace}:{kind}", kwargs={**mount, **part})

    # Questions

    def validated_query(self, serializer: type[Serializer[Any]]) -> Any:
        """Return the query parameters. Raises 400 for unknown or invalid ones.

        A DELETE may not have a body: a reason in it would be lost.
        """
        request = self.request
        if request.method == "DELETE" and request.stream is not None and request.data != {}:
            detail = "DELETE takes no body: pass parameters in the address, such as ?reason=."
            raise Problem(400, "body_refused", detail)
        for name, values in request.query_params.lists():
            if len(values) > 1:
                raise InvalidQuery({name: ["Appears more than once."]})
        return _checked(serializer(data=request.query_params.dict()), InvalidQuery)

    def validated_body(self, serializer: type[Serializer[Any]]) -> Any:
        """Return the body's fields. Raises 422 for invalid ones; no body means an empty object.

        Raises 400 for an unsupported If-Match: without it the action might not be the intended one.
        """
        if has_condition(self.request) and not self.is_conditional:
            raise Problem(400, "condition_refused", "If-Match is not supported here.")
        if not isinstance(self.request.data, Mapping):
            raise InvalidBody("The body must be a JSON object.")
        return _checked(serializer(data=self.request.data), InvalidBody)

    # Acts

    def idempotent(self, act: Callable[[], Response]) -> Response:
        """Run the action in one transaction, once for each Idempotency-Key."""
        tries = TRIES
        while True:
            try:
                with atomic(using=database_alias()):
                    return answered(self.request, act)
            except (DatabaseError, InterfaceError) as error:
                tries -= 1
                # Within another transaction, nothing can be tried again.
                if not tries or not is_passing(error) or project_connection().in_atomic_block:
                    raise


def _measure_body(request: Request) -> None:
    """Set the length of a body that came without one, as under ASGI; it would be ignored otherwise.

    Raises 411 if the length stays unknown: an action must not run without its body.
    """
    plain = request._request
    if plain.META.get("CONTENT_LENGTH") or plain.method in ("GET", "HEAD"):
        return
    length = len(plain.body)
    if not length and "HTTP_TRANSFER_ENCODING" in plain.META:
        raise Problem(411, "length_required", "A request with a body needs Content-Length.")
    if length:
        plain.META["CONTENT_LENGTH"] = str(length)


def _checked(serializer: Serializer[Any], error: type[exceptions.ValidationError]) -> Any:
    if not serializer.is_valid():
        raise error(serializer.errors)
    return serializer.validated_data
