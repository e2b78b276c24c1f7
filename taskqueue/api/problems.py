"""Errors by RFC 9457: `application/problem+json`, each with a `code` for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import islice
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
from taskqueue.access.lacking import lacking
from taskqueue.declarations.payload import storable
from taskqueue.engine.transient_errors import is_passing

LONGEST_TEXT, MOST_TOLD = 2000, 1000
# The place of a mistake in a body: names and indexes.
Path = tuple[object, ...]


class Problem(drf.APIException):
    """A refusal: a status, a code, a sentence, and the place of the mistake if it has one."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        at: Path | None = None,
        wait: float | None = None,
    ) -> None:
        """`wait`: the seconds after which the client may try again."""
        super().__init__(detail, code)
        self.status_code, self.code, self.at, self.wait = status, code, at, wait

    def below(self, *place: object) -> Problem:
        """Return it for a body that is a part of the request."""
        return Problem(self.status_code, self.code, str(self.detail), at=(*place, *(self.at or ())))

    def as_mistake(self) -> Any:
        """Return it as the mistakes of a serializer are, for a list that tells those of all."""
        mistake: Any = [drf.ErrorDetail(str(self.detail), self.code)]
        for part in reversed(self.at or ()):
            mistake = {part: mistake}
        return mistake


def forbidden(user: Any, permissions: Sequence[str], because: str = "") -> Problem:
    """Return the refusal of a user who lacks some of the permissions, with their names."""
    return Problem(403, "permission_denied", f"{because} {lacking(user, permissions)}".strip())


class InvalidQuery(drf.ValidationError):
    """Invalid query parameters."""

    status_code = HTTPStatus.BAD_REQUEST


class InvalidBody(drf.ValidationError):
    """The body is JSON, but invalid."""

    status_code = HTTPStatus.UNPROCESSABLE_ENTITY


# The first match counts, so subclasses come first. An empty sentence means the error's own.
KNOWN: tuple[tuple[type[Exception], int, str, str], ...] = (
    (Http404, 404, "not_found", ""),
    (DjangoPermissionDenied, 403, "permission_denied", "You lack the permission to do this."),
    (RequestDataTooBig, 413, "body_too_large", "The body is larger than this server accepts."),
    (SuspiciousOperation, 400, "malformed", ""),
    (own.TaskDoesNotExist, 404, "task_not_found", ""),
    (own.WorkerDoesNotExist, 404, "worker_not_found", ""),
    (own.OperationDoesNotExist, 404, "operation_not_found", ""),
    (own.ScheduleDoesNotExist, 404, "schedule_not_found", ""),
    (own.WorkflowDoesNotExist, 404, "workflow_not_found", ""),
    (own.QueueDoesNotExist, 404, "queue_not_found", ""),
    (own.LimitDoesNotExist, 404, "limit_not_found", ""),
    (own.AlertRuleDoesNotExist, 404, "alert_rule_not_found", ""),
    (own.AlertDoesNotExist, 404, "alert_not_found", ""),
    (own.EndpointDoesNotExist, 404, "webhook_not_found", ""),
    (own.DeliveryDoesNotExist, 404, "delivery_not_found", ""),
    (own.SavedSearchDoesNotExist, 404, "search_not_found", ""),
    (own.SavedSearchExists, 409, "search_exists", ""),
    (own.InvalidSavedSearch, 422, "invalid_search", ""),
    (own.InvalidWebhook, 422, "invalid_webhook", ""),
    (own.UnknownTask, 422, "unknown_task", ""),
    (own.UnknownWorkflow, 422, "unknown_workflow", ""),
    (own.ArgumentsDoNotBind, 422, "arguments_do_not_bind", ""),
    (own.InvalidArguments, 422, "invalid_arguments", ""),
    (own.AlertRuleExists, 409, "alert_rule_exists", ""),
    (own.InvalidAlertRule, 422, "invalid_alert_rule", ""),
    (own.InvalidSchedule, 422, "invalid_schedule", ""),
    (own.InvalidWorkflow, 422, "invalid_workflow", ""),
    (own.InvalidTask, 422, "invalid_option", ""),
    (own.IdempotencyKeyReused, 422, "idempotency_key_reused", ""),
    (own.EnqueuedBefore, 409, "task_exists", ""),
    (own.CapacityReached, 409, "capacity_reached", ""),
    (own.ChangedMeanwhile, 412, "precondition_failed", ""),
    (own.TransitionRefused, 409, "transition_refused", ""),
    (own.TaskQueueError, 422, "refused", ""),
)
# The code of a task that REST may not enqueue, and those that a mistake may have of its own.
NOT_EXPOSED = "task_not_exposed"
CODES = frozenset({"redacted_value", *(code for _, status, code, _ in KNOWN if status == 422)})


def answer_to(error: Exception, *, path: str) -> Response | None:
    """Return the answer for an error; None for an unexpected one."""
    problem = _problem(error)
    if problem is None:
        return None
    status, code, detail, more = problem
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": _shown(detail),
        "instance": escape_uri_path(_shown(path)),
        **more,
    }
    return Response(body, status=status, content_type="application/problem+json")


def _problem(error: Exception) -> tuple[int, str, str, dict[str, Any]] | None:
    """Return its status, code and sentence, and further fields of the answer."""
    if isinstance(error, Problem):
        place = {} if error.at is None else {"errors": [_mistake(error.at, str(error.detail))]}
        return error.status_code, error.code, str(error.detail), place
    if isinstance(error, drf.ValidationError):
        errors = list(islice(_listed(error.detail, ()), MOST_TOLD))
        first = [f"{each['pointer'] or 'request'}: {each['detail']}" for each in errors[:3]]
        more = [f"and {len(errors) - 3:,} more mistakes"] if len(errors) > 3 else []
        status, code = _shared(errors, int(error.status_code))
        return status, code, "; ".join([*first, *more]), {"errors": errors}
    if isinstance(error, DatabaseError | InterfaceError) and is_passing(error):
        return 503, "database_busy", "The database is busy or unavailable. Try again.", {}
    if isinstance(error, drf.APIException):
        codes = error.get_codes()
        code = codes if isinstance(codes, str) else error.default_code
        return int(error.status_code), code, str(error.detail), {}
    if isinstance(error, DjangoPermissionDenied) and str(error):
        return 403, "permission_denied", str(error), {}
    if isinstance(error, own.DuplicateTask):
        return _duplicate(error)
    if isinstance(error, own.EventsGone):
        return 410, "events_gone", str(error), {"oldest": error.oldest}
    if isinstance(error, own.DuplicateWorkflow):
        detail = f"Workflow {error.result} holds the unique key."
        return 409, "duplicate_workflow", detail, {"workflow_id": str(error.result)}
    for kind, status, code, detail in KNOWN:
        if isinstance(error, kind):
            text = detail or str(error) or HTTPStatus(status).description
            path = error.path if isinstance(error, own.TaskQueueError) else ()
            return status, code, text, {"errors": [_mistake(path, text)]} if path else {}
    return None


def _shared(errors: Sequence[Mapping[str, str]], status: int) -> tuple[int, str]:
    """Return the status and code of mistakes: those of a problem that all of them are."""
    codes = {each["code"] for each in errors}
    code = codes.pop() if len(codes) == 1 else "invalid"
    if code == NOT_EXPOSED:
        return HTTPStatus.FORBIDDEN, code
    return status, code if code in CODES else "invalid"


def _duplicate(error: own.DuplicateTask) -> tuple[int, str, str, dict[str, Any]]:
    """Name who holds the key by its id, and no more: it may be of another type."""
    holder = getattr(error.result, "id", error.result)
    detail = str(error) if holder is None else f"Task {holder} holds the unique key."
    more: dict[str, Any] = {} if holder is None else {"task_id": str(holder)}
    if error.place is not None:
        more["errors"] = [_mistake(("tasks", error.place, "unique_key"), detail, "duplicate_task")]
    return 409, "duplicate_task", detail, more


def _shown(text: str) -> str:
    """Return text of the request, shortened, and without characters that JSON cannot hold."""
    return storable(text, limit=LONGEST_TEXT)


def _listed(detail: Any, at: Path) -> Iterator[dict[str, str]]:
    """Yield each mistake of a serializer."""
    if isinstance(detail, Mapping):
        for name, each in detail.items():
            is_whole = name == api_settings.NON_FIELD_ERRORS_KEY
            yield from _listed(each, at if is_whole else (*at, name))
    elif isinstance(detail, list):
        for number, each in enumerate(detail):
            yield from _listed(each, (*at, number) if isinstance(each, Mapping | list) else at)
    else:
        yield _mistake(at, str(detail), str(getattr(detail, "code", "invalid")))


def _mistake(at: Path, detail: str, code: str = "invalid") -> dict[str, str]:
    """Return one of the `errors` of a problem, with a JSON pointer (RFC 6901)."""
    escaped = (str(each).replace("~", "~0").replace("/", "~1") for each in at)
    pointer = "".join(f"/{each}" for each in escaped)
    return {"pointer": _shown(pointer), "code": _shown(code), "detail": _shown(detail)}
