"""Errors by RFC 9457: `application/problem+json`, each with a `code` for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, InterfaceError
from django.http import Http404
from django.utils.encoding import escape_uri_path
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.settings import api_settings

from taskqueue import exceptions as own
from taskqueue.declarations.payload import storable
from taskqueue.engine.transient_errors import is_passing

MEDIA_TYPE = "application/problem+json"
LONGEST_TEXT, MOST_TOLD = 2000, 100


class Problem(drf.APIException):
    """A refusal: a status, a code, and a sentence."""

    def __init__(
        self, status: int, code: str, detail: str, *, errors: list[dict[str, str]] | None = None
    ) -> None:
        super().__init__(detail, code)
        self.status_code = status
        self.code = code
        self.errors = errors or []


class InvalidQuery(drf.ValidationError):
    """Invalid query parameters."""

    status_code = HTTPStatus.BAD_REQUEST


class InvalidBody(drf.ValidationError):
    """The body is JSON, but invalid."""

    status_code = HTTPStatus.UNPROCESSABLE_ENTITY


# The first match counts: subclasses come first.
KNOWN: tuple[tuple[type[Exception], int, str], ...] = (
    (own.TaskDoesNotExist, 404, "task_not_found"),
    (own.WorkerDoesNotExist, 404, "worker_not_found"),
    (own.OperationDoesNotExist, 404, "operation_not_found"),
    (own.ScheduleDoesNotExist, 404, "schedule_not_found"),
    (own.UnknownTask, 422, "unknown_task"),
    (own.ArgumentsDoNotBind, 422, "arguments_do_not_bind"),
    (own.InvalidArguments, 422, "invalid_arguments"),
    (own.InvalidSchedule, 422, "invalid_schedule"),
    (own.InvalidTask, 422, "invalid_option"),
    (own.DuplicateTask, 409, "duplicate_task"),
    (own.EnqueuedBefore, 409, "duplicate_task"),
    (own.IdempotencyKeyReused, 422, "idempotency_key_reused"),
    (own.ChangedMeanwhile, 412, "precondition_failed"),
    (own.TransitionRefused, 409, "transition_refused"),
    (own.TaskQueueError, 422, "refused"),
)


def answer_to(error: Exception, *, path: str) -> Response | None:
    """Return the answer for an error; None for an unexpected one."""
    problem = _problem(error)
    if problem is None:
        return None
    status, code, detail, extra = problem
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": _shown(detail),
        "instance": escape_uri_path(_shown(path)),
        **extra,
    }
    return Response(body, status=status, content_type=MEDIA_TYPE)


def _problem(error: Exception) -> tuple[int, str, str, dict[str, Any]] | None:
    if isinstance(error, Problem):
        return error.status_code, error.code, str(error.detail), _with_errors(error.errors)
    if isinstance(error, drf.ValidationError):
        errors = list(_listed(error.detail, ""))
        detail = "; ".join(
            f"{each['pointer'] or 'request'}: {each['detail']}" for each in errors[:3]
        )
        return int(error.status_code), "invalid", detail, _with_errors(errors)
    if isinstance(error, Http404):
        return 404, "not_found", str(error) or "Nothing exists here.", {}
    if isinstance(error, DjangoPermissionDenied):
        return 403, "permission_denied", "You lack the permission to do this.", {}
    if isinstance(error, RequestDataTooBig):
        return 413, "body_too_large", "The body is larger than this server accepts.", {}
    if isinstance(error, SuspiciousOperation):
        return 400, "malformed", str(error) or "The request is malformed.", {}
    if isinstance(error, DatabaseError | InterfaceError) and is_passing(error):
        return 503, "database_busy", "The database is busy or unavailable. Try again.", {}
    if isinstance(error, drf.APIException):
        return int(error.status_code), _code_of(error), str(error.detail), {}
    for kind, status, code in KNOWN:
        if isinstance(error, kind):
            return status, code, str(error), _about(error)
    return None


def _code_of(error: drf.APIException) -> str:
    codes = error.get_codes()
    return codes if isinstance(codes, str) else error.default_code


def _about(error: Exception) -> dict[str, Any]:
    """Return more fields for programs: the task that holds a unique key, and who wanted it."""
    if isinstance(error, own.DuplicateTask):
        holder = getattr(error.result, "id", error.result)
        about: dict[str, Any] = {} if holder is None else {"task_id": str(holder)}
        if error.place is not None:
            pointer = f"/tasks/{error.place}/unique_key"
            about |= _with_errors(
                [{"pointer": pointer, "code": "duplicate_task", "detail": str(error)}]
            )
        return about
    if isinstance(error, own.EnqueuedBefore):
        return {"task_id": str(error.task_id)}
    return {}


def _with_errors(errors: list[dict[str, str]]) -> dict[str, Any]:
    first = errors[:MOST_TOLD]
    shown_errors = [{name: _shown(text) for name, text in mistake.items()} for mistake in first]
    return {"errors": shown_errors} if shown_errors else {}


def _shown(text: str) -> str:
    """Return text of the request, shortened, and without characters that JSON cannot hold."""
    return storable(text, limit=LONGEST_TEXT)


def _listed(detail: Any, pointer: str) -> Iterator[dict[str, str]]:
    """Yield each mistake with a JSON pointer (RFC 6901) to its place."""
    if isinstance(detail, Mapping):
        for name, each in detail.items():
            is_whole = name == api_settings.NON_FIELD_ERRORS_KEY
            place = "" if is_whole else f"/{_escaped(str(name))}"
            yield from _listed(each, pointer + place)
    elif isinstance(detail, list):
        for number, each in enumerate(detail):
            inner = f"{pointer}/{number}" if isinstance(each, Mapping | list) else pointer
            yield from _listed(each, inner)
    else:
        yield {
            "pointer": pointer,
            "code": str(getattr(detail, "code", "invalid")),
            "detail": str(detail),
        }


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
