"""The view that all others are made from: what the API decides itself, and the project does not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError, DataError, InterfaceError, connections
from django.db.transaction import atomic, non_atomic_requests
from django.utils import translation
from django.utils.module_loading import import_string
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView, set_rollback

from taskqueue.api import idempotency
from taskqueue.api.access import Needs, Rates
from taskqueue.api.describing import Described
from taskqueue.api.etags import etag_of, has_condition, is_known
from taskqueue.api.fields import NoQuery
from taskqueue.api.parsing import AlwaysJSON, PlainJSONRenderer, StrictJSONParser
from taskqueue.api.problems import InvalidBody, InvalidQuery, Problem, answer_to
from taskqueue.conf import get_settings
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.transient_errors import is_passing

logger = logging.getLogger("taskqueue.api")
TRIES = 3
"""How often an act is tried where the database could not do it: after a deadlock, say."""
NO_STORE = "private, no-cache"


class ApiView(APIView):
    """One address. `needs` names, for each method, the permissions that are all needed."""

    needs: Mapping[str, tuple[str, ...]] = {}
    scope = "act"
    """How often what it changes may be asked for: see `throttles`."""
    tag = ""
    """Under which heading the documentation shows it."""
    has_etag = False
    """Whether what it shows bears one."""
    located: Sequence[int] = (201,)
    """The statuses of answers that bear a Location."""
    is_conditional = False
    """Whether what it changes heeds If-Match."""

    authentication_classes: Any = ()
    permission_classes = (Needs,)
    throttle_classes = (Rates,)
    parser_classes = (StrictJSONParser,)
    renderer_classes = (PlainJSONRenderer,)
    content_negotiation_class = AlwaysJSON
    versioning_class = None
    metadata_class = None
    schema = Described()

    @classmethod
    def as_view(cls, **given: Any) -> Any:
        """Without the project's ATOMIC_REQUESTS: a wait must not hold a transaction open."""
        view: Any = super().as_view(**given)
        for alias in connections:
            view = non_atomic_requests(using=alias)(view)
        return view

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Answer in English, whatever the browser prefers: only half of each error would follow.

        A method gets the parameters that it names: a project may mount the API below an address
        with parameters of its own, such as a tenant's name.
        """
        method = getattr(self, request.method.lower(), None)
        names = signature(method).parameters if method else ()
        with translation.override("en"):
            return super().dispatch(
                request, **{name: value for name, value in kwargs.items() if name in names}
            )

    def get_authenticators(self) -> list[BaseAuthentication]:
        """The project's, unless the setting API_AUTHENTICATION names others."""
        paths = get_settings().API_AUTHENTICATION
        if paths is None:
            return [each() for each in self.settings.DEFAULT_AUTHENTICATION_CLASSES]
        return [import_string(path)() for path in paths]

    def get_authenticate_header(self, request: Request) -> str:
        """The first way to say who one is that has a header: 401 is never without."""
        headers = [each.authenticate_header(request) for each in self.get_authenticators()]
        return next(filter(None, headers), 'Session realm="api"')

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who asks, how often, whether they may; then whether there is a body."""
        super().initial(request, *args, **kwargs)
        _measure_body(request)

    def perform_authentication(self, request: Request) -> None:
        """Who it is. Also who fails at that is counted."""
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
        """How often comes before whether: who is refused may not ask without end."""
        super().check_throttles(request)
        super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """They were checked already."""

    # Answers

    def handle_exception(self, error: Exception) -> Response:
        """The problem that the client is told; what nobody foresaw is the server's own trouble."""
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
        if answer.status_code == 503:
            logger.warning("The database could not do it error=%s", " ".join(str(error).split()))
            answer["Retry-After"] = "1"
        if isinstance(error, exceptions.MethodNotAllowed):
            answer["Allow"] = ", ".join(self.allowed_methods)
        answer.exception = True
        return answer

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        """What every answer bears: nobody else's cache keeps it."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response.setdefault("Cache-Control", NO_STORE)
        response.setdefault("Content-Language", "en")
        return response

    def shown(
        self,
        request: Request,
        value: Any,
        *,
        status: int = 200,
        headers: Any = None,
        part: str = "",
    ) -> Response:
        """What is shown, with its ETag; 304 where the client has it already."""
        etag = etag_of(value, part=part)
        headers = {**(headers or {}), "ETag": etag}
        if request.method in ("GET", "HEAD") and is_known(request, etag):
            return Response(status=304, headers=headers)
        return Response(value, status=status, headers=headers)

    # Questions

    def validated_query(self, request: Request, serializer: type[Serializer[Any]] = NoQuery) -> Any:
        """What the address asks for. Raises 400 for what the serializer does not know.

        It is all that a DELETE says: a reason in its body would be lost.
        """
        if request.method == "DELETE" and request.stream is not None and request.data != {}:
            told = (
                "A DELETE has no body here: what it takes stands in the address, as ?reason= does."
            )
            raise Problem(400, "body_refused", told)
        given: dict[str, Any] = {}
        for name, values in request.query_params.lists():
            if len(values) > 1:
                raise InvalidQuery({name: ["stands more than once."]})
            given[name] = values[0]
        return _checked(serializer(data=given), InvalidQuery)

    def validated_body(
        self, request: Request, serializer: type[Serializer[Any]], **more: Any
    ) -> Any:
        """What the body says. Raises 422 for what does not fit; no body is an empty object.

        It is all that such a request says. Raises 400 for one that believes to have said more, in
        its address or by If-Match: it would be done otherwise than it is meant.
        """
        self.validated_query(request)
        if has_condition(request) and not self.is_conditional:
            raise Problem(400, "condition_refused", "If-Match is not heeded here: leave it out.")
        data = request.data
        if not isinstance(data, Mapping):
            raise InvalidBody("must be a JSON object.")
        return _checked(serializer(data=data, **more), InvalidBody)

    # Acts

    def once(self, request: Request, act: Callable[[], Response]) -> Response:
        """Do it in one transaction; told the same Idempotency-Key again, answer the same."""
        for _ in range(TRIES - 1):
            try:
                return self._once(request, act)
            except (DatabaseError, InterfaceError) as error:
                # In a transaction around it, nothing could be tried again.
                if not is_passing(error) or project_connection().in_atomic_block:
                    raise
        return self._once(request, act)

    def _once(self, request: Request, act: Callable[[], Response]) -> Response:
        with atomic(using=database_alias()):
            return idempotency.answered(request, act)


def _measure_body(request: Request) -> None:
    """Under ASGI a body may come without its length, and would be taken for none.

    Raises 411 where the server cannot tell either: an act must not be done without what was said.
    """
    plain = request._request
    if plain.META.get("CONTENT_LENGTH") or plain.method in ("GET", "HEAD"):
        return
    length = len(plain.body)
    if not length and "HTTP_TRANSFER_ENCODING" in plain.META:
        raise Problem(411, "length_required", "A body needs its Content-Length here.")
    if length:
        plain.META["CONTENT_LENGTH"] = str(length)


def _checked(serializer: Serializer[Any], error: type[exceptions.ValidationError]) -> Any:
    if not serializer.is_valid():
        raise error(serializer.errors)
    return serializer.validated_data
