"""What is done to one task by hand: each one verb, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import control
from taskqueue.access.authority import NEEDED, cancel_waiting, leaves_out_running, may, retry
from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.describing import describe
from taskqueue.api.fields import Reasoned, Text
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.bodies import check_call, check_each, check_exposed, exposed
from taskqueue.api.tasks.conditions import TaskView, answer_now
from taskqueue.api.tasks.option_fields import (
    CHANGEABLE,
    ChangeableOptions,
    ListOfAnything,
    NearMoment,
    ObjectField,
)
from taskqueue.api.tasks.rows import TaskJSON
from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.locking import status_of
from taskqueue.exceptions import TransitionRefused
from taskqueue.results.reading import row_of

CONFLICTS = (404, 409, 412)


def needs(verb: str) -> Mapping[str, tuple[str, ...]]:
    """The permissions of the address of a verb."""
    return {"POST": (VIEW_TASKS, *NEEDED[verb])}


class Retry(Reasoned):
    """Nothing, or other arguments: then it is a new task, and the old one stays as it is."""

    args = ListOfAnything(required=False, help_text="Left out: those that it has.")
    kwargs = ObjectField(required=False)


class Reschedule(Reasoned):
    """When it is to run."""

    run_after = NearMoment()


class Duplicate(ChangeableOptions):
    """What the new task has other than the old one."""

    reason = Text(required=False, default="", allow_blank=True, max_length=1000)


class TaskRetry(TaskView):
    """Running it again."""

    needs = needs("retry")
    is_conditional = True

    @describe("retryTask", answers={200: TaskJSON, 201: TaskJSON}, body=Retry, problems=CONFLICTS)
    def post(self, request: Request, task_id: str) -> Response:
        """Run a finished task again; with other arguments as a new task, which is answered: 201.

        Also frees a running task whose worker is lost (`worker_lost`): its attempt ends at once,
        and the task is ready. That takes the permission to stop, too. If the worker's host is only
        cut off from the database, the body may still run there until it is reached again.

        Other arguments take the permission to enqueue too, and a type marked `api=True`.
        """
        self.validated_query(request)
        given = self.validated_body(request, Retry)
        who = {"by": request.user, "reason": given["reason"]}
        call = {name: given[name] for name in ("args", "kwargs") if name in given}
        if call and not may(request.user, "retry_with"):
            raise Problem(403, "permission_denied", "Other arguments need the one to enqueue.")

        def act(known: UUID) -> Response:
            if not call:
                retry(known, **who)
                return answer_now(request, known)
            _check_retry(known, call)
            new_id = control.retry_with(known, **call, **who)
            return answer_now(request, new_id, status=201, is_new=True)

        return self.acted(request, task_id, act)


def _check_retry(task_id: UUID, call: Mapping[str, Any]) -> None:
    """Raise 403 and 422 as an enqueue with these arguments would."""
    task = row_of(task_id)
    check_exposed(task.name)
    definition = exposed(task.name).using(unique_key=None)  # It holds none.
    check_call(definition, call.get("args", task.args), call.get("kwargs", task.kwargs))


class TaskCancel(TaskView):
    """Cancelling it."""

    needs = needs("cancel")
    is_conditional = True

    @describe(
        "cancelTask", answers={200: TaskJSON, 202: TaskJSON}, body=Reasoned, problems=CONFLICTS
    )
    def post(self, request: Request, task_id: str) -> Response:
        """End a waiting task now; ask a running one to stop: 202, which takes that permission.

        200 and `worker_lost` where the worker was lost: then its attempt has ended, as with stop.
        """
        self.validated_query(request)
        who = {"by": request.user, "reason": self.validated_body(request, Reasoned)["reason"]}

        def act(known: UUID) -> Response:
            if leaves_out_running("cancel", request.user):
                _cancel_waiting(known, who)
            else:
                control.cancel(known, **who)
            return _stopped(request, known)

        return self.acted(request, task_id, act)


def _cancel_waiting(task_id: UUID, who: Mapping[str, Any]) -> None:
    if cancel_waiting(task_id, **who):
        return
    status = status_of(project_connection(), task_id)
    if status == TaskStatus.RUNNING:
        raise Problem(403, "permission_denied", "It runs: to stop it takes another permission.")
    raise TransitionRefused(f"Task {task_id} is {status}, and cannot be cancelled.")


class TaskStop(TaskView):
    """Stopping it."""

    needs = needs("stop")
    is_conditional = True

    @describe("stopTask", answers={200: TaskJSON, 202: TaskJSON}, body=Reasoned, problems=CONFLICTS)
    def post(self, request: Request, task_id: str) -> Response:
        """Ask what runs to stop: 202. After a grace it is interrupted, after another killed.

        200 where nobody ran it at that moment: then it has ended. So it has where its worker was
        lost: `worker_lost` is true then. If the worker's host is only cut off from the database,
        the body may still run there until it is reached again. Look at `worker_lost` of the task,
        and send its ETag as If-Match, to know before.
        """
        self.validated_query(request)
        who = {"by": request.user, "reason": self.validated_body(request, Reasoned)["reason"]}

        def act(known: UUID) -> Response:
            control.request_stop(known, **who)
            return _stopped(request, known)

        return self.acted(request, task_id, act)


def _stopped(request: Request, task_id: UUID) -> Response:
    status = status_of(project_connection(), task_id)
    return answer_now(request, task_id, status=202 if status == TaskStatus.RUNNING else 200)


class TaskRunNow(TaskView):
    """Running it without waiting for its time."""

    needs = needs("run_now")
    is_conditional = True

    @describe("runTaskNow", answers={200: TaskJSON}, body=Reasoned, problems=CONFLICTS)
    def post(self, request: Request, task_id: str) -> Response:
        """Make a task ready that waits for its time."""
        self.validated_query(request)
        reason = self.validated_body(request, Reasoned)["reason"]

        def act(known: UUID) -> Response:
            control.run_now(known, by=request.user, reason=reason)
            return answer_now(request, known)

        return self.acted(request, task_id, act)


class TaskReschedule(TaskView):
    """Giving it another time."""

    needs = needs("reschedule")
    is_conditional = True

    @describe("rescheduleTask", answers={200: TaskJSON}, body=Reschedule, problems=CONFLICTS)
    def post(self, request: Request, task_id: str) -> Response:
        """Give a task that waits, or is ready, another time."""
        self.validated_query(request)
        given = self.validated_body(request, Reschedule)
        check_each({"run_after": given["run_after"]})

        def act(known: UUID) -> Response:
            control.reschedule(known, given["run_after"], by=request.user, reason=given["reason"])
            return answer_now(request, known)

        return self.acted(request, task_id, act)


class TaskDuplicate(TaskView):
    """Another one like it."""

    needs = needs("duplicate")
    scope = "enqueue"
    is_conditional = True

    @describe("duplicateTask", answers={201: TaskJSON}, body=Duplicate, problems=CONFLICTS)
    def post(self, request: Request, task_id: str) -> Response:
        """Enqueue another task with the same arguments and options, but for those given here.

        That takes a type marked `api=True`, as every enqueue does.
        """
        self.validated_query(request)
        given = self.validated_body(request, Duplicate)
        changes = {name: given[name] for name in CHANGEABLE if name in given}
        check_each(changes)

        def act(known: UUID) -> Response:
            check_exposed(row_of(known).name)
            new_id = control.duplicate(known, by=request.user, reason=given["reason"], **changes)
            return answer_now(request, new_id, status=201, is_new=True)

        return self.acted(request, task_id, act)
