"""One task: look at it, wait for it, change its terms, delete it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import control
from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.describing import describe
from taskqueue.api.etags import is_known
from taskqueue.api.fields import Strict, Text
from taskqueue.api.paging import Digits
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.bodies import check_each, mistake
from taskqueue.api.tasks.conditions import TaskView, answer_now, id_of, seen_by
from taskqueue.api.tasks.option_fields import CHANGEABLE, ChangeableOptions
from taskqueue.api.tasks.rows import TaskJSON
from taskqueue.api.tasks.waiting import LONGEST_WAIT, Waited, waited
from taskqueue.core.states import FINISHED
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.locking import status_of
from taskqueue.engine.control.task_verbs import TASK_VERBS


class Waiting(Strict):
    """The time to wait."""

    wait = Digits(
        required=False, default=0, min_value=0, max_value=LONGEST_WAIT,
        help_text="Seconds to wait for its end; with If-None-Match, for any change.",
    )  # fmt: skip


class Change(ChangeableOptions):
    """The changes, and the reason."""

    reason = Text(
        required=False, default="", allow_blank=True, max_length=1000, help_text="For the audit."
    )


class Because(Strict):
    """Why: a DELETE has no body."""

    reason = Text(required=False, default="", allow_blank=True, max_length=1000)


class TaskDetail(TaskView):
    """One task."""

    needs = {
        "GET": (VIEW_TASKS,),
        "PATCH": (VIEW_TASKS, *TASK_VERBS["update"].permissions),
        "DELETE": (VIEW_TASKS, *TASK_VERBS["delete"].permissions),
    }
    has_etag = True
    is_conditional = True

    @describe("getTask", answers={200: TaskJSON, 304: None}, query=Waiting, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """All there is to say about it; with `wait`, once it has ended or the time is over."""
        seconds = self.validated_query(request, Waiting)["wait"]
        known = id_of(task_id)
        if "HTTP_IF_NONE_MATCH" not in request.META:
            if not seconds:
                return answer_now(request, known)
            return _wait_for_end(request, known, seconds).noted(answer_now(request, known))
        found = waited(
            request,
            lambda: answer_now(request, known),
            lambda each: not is_known(request, each["ETag"]),
            seconds,
        )
        seen = found.seen
        if is_known(request, seen["ETag"]):
            return found.noted(Response(status=304, headers={"ETag": seen["ETag"]}))
        return found.noted(seen)

    @describe("changeTask", answers={200: TaskJSON}, body=Change, problems=(404, 409, 412))
    def patch(self, request: Request, task_id: str) -> Response:
        """Change its terms before it has finished: its queue, its priority, its limits."""
        self.validated_query(request)
        given = self.validated_body(request, Change)
        changes = {name: given[name] for name in CHANGEABLE if name in given}
        if not changes:
            told = f"Nothing to change: give at least one of {sorted(CHANGEABLE)}."
            raise Problem(422, "invalid", told, errors=[mistake((), told)])
        check_each(changes)

        def act() -> Response:
            known = id_of(task_id)
            who: Any = {"by": request.user, "reason": given["reason"]}
            control.update(known, changes, seen=seen_by(request), **who)
            return answer_now(request, known)

        return self.idempotent(request, act)

    @describe("deleteTask", answers={204: None}, query=Because, problems=(404, 409, 412, 422))
    def delete(self, request: Request, task_id: str) -> Response:
        """Delete a finished task with its attempts and log lines; only the audit tells of it."""
        reason = self.validated_query(request, Because)["reason"]

        def act() -> Response:
            known = id_of(task_id)
            control.delete(known, by=request.user, reason=reason, seen=seen_by(request))
            return Response(status=204)

        return self.idempotent(request, act)


def _wait_for_end(request: Request, task_id: UUID, seconds: float) -> Waited[str]:
    """Raises `TaskDoesNotExist`."""

    def look() -> str:
        return status_of(project_connection(), task_id)

    return waited(request, look, lambda status: status in FINISHED, seconds)
