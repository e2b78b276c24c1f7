"""One task: view it, wait for it, change or delete it; the addresses of its verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import ENQUEUE, STOP, VIEW_TASKS
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Reasoned, Strict
from taskqueue.api.problems import Problem, forbidden
from taskqueue.api.tasks.bodies import (
    check_call,
    check_each,
    check_kept_secrets,
    exposed,
    is_exposed,
    not_exposed,
)
from taskqueue.api.tasks.option_fields import (
    CHANGEABLE,
    OPTIONS,
    ChangeableOptions,
    NearMoment,
)
from taskqueue.api.tasks.waiting import LONGEST_WAIT, waited
from taskqueue.api.views import Digits, OneView, act_view
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.locking import id_of, status_of
from taskqueue.engine.control.mutable_options import COLUMNS as TERM_COLUMNS
from taskqueue.engine.control.task_verbs import NOT_IN_BACKGROUND, TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb, Verb
from taskqueue.engine.verbs import VERBS
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Task
from taskqueue.monitoring.read_models.task_history import ShownTask, shown_task
from taskqueue.results.reading import row_of

# Verbs that create another task of the type, which only types marked `api=True` allow.
MAKING = [verb.name for verb in TASK_VERBS.values() if ENQUEUE in verb.permissions]
# Columns that If-Match compares. The progress of a body is left out: it changes by itself.
STEPS = (
    "status", "attempt", "attempts_before_retry", "args", "kwargs", "run_after", "deadline_at",
    "expires_at", "enqueued_at", "finished_at", "options", "metadata", *TERM_COLUMNS,
)  # fmt: skip


class Waiting(Strict):
    """The parameter for a wait."""

    wait = Digits(
        default=0,
        max_value=LONGEST_WAIT,
        help_text="Seconds to wait for its end; with If-None-Match, for any change.",
    )


class Change(Reasoned, ChangeableOptions):
    """The changes, and the reason.

    Arguments, `deadline`, `expires_after` and `metadata` can be changed only while the task waits.
    """

    args = serializers.ListField(required=False, help_text="Left out: those that it has.")
    kwargs = serializers.DictField(required=False, help_text="Left out: those that it has.")


class TaskView(OneView):
    """One task."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "tasks"
    compared = STEPS
    answers = {200: ShownTask}

    def find(self, key: UUID | str) -> Task:
        return row_of(id_of(key))

    def details(self, found: Task) -> ShownTask:
        shown = shown_task(found, self.request.user)
        if is_exposed(found.name):
            return shown
        return replace(shown, can=[verb for verb in shown.can if verb not in MAKING])

    def check_call(self, task: Task) -> None:
        """Refuse arguments of the request that an enqueue of the type over REST would refuse."""
        _check_exposed(task)
        definition = exposed(task.name).without_key()
        call = {"args": task.args, "kwargs": task.kwargs} | self.parameters
        check_call(definition, call["args"], call["kwargs"])
        check_kept_secrets(definition, task.args, task.kwargs, self.parameters)

    def outcome(self, verb: Verb, key: str, result: Any) -> Response:
        """Return 201 and the new task if there is one, and 202 while an attempt has yet to stop."""
        if isinstance(result, UUID):
            return self.answer(result, status=201, Location=self.address("task", result))
        if result == TaskStatus.RUNNING:
            return self.answer(key, status=202)
        return super().outcome(verb, key, result)


class TaskDetail(TaskView):
    """View, change and delete a task."""

    needs = {
        "GET": (VIEW_TASKS,),
        "PATCH": (VIEW_TASKS, *TASK_VERBS["update"].permissions),
        "DELETE": (VIEW_TASKS, *TASK_VERBS["delete"].permissions),
    }

    @endpoint("getTask", answers={200: ShownTask, 304: None}, query=Waiting, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """View the task. With `wait`, answer once it has ended or the time is over."""
        seconds = self.parameters["wait"]
        if "HTTP_IF_NONE_MATCH" in request.META:
            return waited(
                self,
                lambda: self.answer(task_id),
                lambda answer: answer.status_code != 304,
                seconds,
            )
        if seconds:
            connection, known = project_connection(), id_of(task_id)
            waited(self, lambda: status_of(connection, known), FINISHED.__contains__, seconds)
        return self.answer(task_id)

    @endpoint("changeTask", answers={200: ShownTask}, body=Change, problems=(404, 409, 412))
    def patch(self, request: Request, task_id: str) -> Response:
        """Change its options before it has finished: its queue, its priority, its limits.

        While it waits, also its arguments, deadline, expiry and metadata: otherwise 409. The
        deadline and the expiry count from now where they are seconds. Other arguments need the
        permission to enqueue too, and a type marked `api=True`; they are checked as those of an
        enqueue. A task of a workflow keeps its arguments.
        """
        changes = dict(self.parameters)
        reason = changes.pop("reason")
        call = {name: changes.pop(name) for name in ("args", "kwargs") if name in changes}
        if not (changes or call):
            names = sorted({*CHANGEABLE, "args", "kwargs"})
            raise Problem(
                422, "invalid", f"Nothing to change: give at least one of {names}.", at=()
            )
        check_each(changes)
        if call and not request.user.has_perm(ENQUEUE):
            raise forbidden(request.user, (ENQUEUE,))
        check = self.check_call if call else None
        return self.act(
            TASK_VERBS["update"], task_id, check, changes=changes, reason=reason, **call
        )

    @endpoint("deleteTask", answers={204: None}, query=Reasoned, problems=(404, 409, 412, 422))
    def delete(self, request: Request, task_id: str) -> Response:
        """Delete a finished task with its attempts and log lines; only the audit entry remains."""
        return self.act(TASK_VERBS["delete"], task_id, **self.parameters)


# Verbs that are HTTP methods of the task's address.
AT_THE_TASK = ("update", "delete")


class Changes(ChangeableOptions):
    """The changes of an update; fields that are left out keep their values."""

    left_out = NOT_IN_BACKGROUND


# The field for a parameter, by its kind.
KINDS: Mapping[str, Any] = {"moment": NearMoment, "changes": Changes}


class TaskAct(TaskView):
    """A verb on one task."""

    def run(self, request: Request, key: str) -> Response:
        """Apply the verb. Raises 403 if it would stop an attempt and the user may not."""
        check_each({name: self.parameters[name] for name in OPTIONS & self.parameters.keys()})
        self._refuse_to_stop(key)
        makes_task = ENQUEUE in self.verb.permissions
        try:
            return self.act(
                self.verb, key, _check_exposed if makes_task else None, **self.parameters
            )
        except TransitionRefused:
            self._refuse_to_stop(key)  # It may have started meanwhile.
            raise

    def _refuse_to_stop(self, key: str) -> None:
        if not self.verb.leaves_out_running(self.request.user):
            return
        if status_of(project_connection(), id_of(key)) == TaskStatus.RUNNING:
            raise forbidden(self.request.user, (STOP,), "The task is running.")


def _check_exposed(task: Task) -> None:
    if not is_exposed(task.name):
        raise not_exposed(task.name)


class Retry(Reasoned):
    """Nothing, or other arguments; these create a new task and leave the old one unchanged."""

    args = serializers.ListField(required=False, help_text="Left out: those that it has.")
    kwargs = serializers.DictField(required=False)


class RetryAct(TaskAct):
    """Run the task again, or run a new task with other arguments."""

    body = Retry
    answers = {200: ShownTask, 201: ShownTask}

    def run(self, request: Request, key: str) -> Response:
        if self.parameters.keys() == {"reason"}:
            return super().run(request, key)
        verb = TASK_VERBS["retry_with"]
        if not verb.is_for(request.user):
            raise forbidden(request.user, verb.permissions)
        return self.act(verb, key, self.check_call, **self.parameters)


class Duplicate(Reasoned, ChangeableOptions):
    """The options of the new task that differ from the old one."""


class DuplicateAct(TaskAct):
    """Enqueue a copy of the task."""

    body = Duplicate
    answers = {201: ShownTask}
    scope = "enqueue"


BASES: Mapping[str, type[TaskAct]] = {"retry": RetryAct, "duplicate": DuplicateAct}


def _view(verb: TaskVerb) -> type[OneView]:
    """Return the view of a verb, with a body for its parameters."""
    attributes: dict[str, Any] = {}
    if verb.ends_attempt and verb.name not in BASES:
        attributes["answers"] = {200: ShownTask, 202: ShownTask}
    if verb.parameters:
        fields = {each.name: KINDS[each.kind]() for each in verb.parameters}
        name = verb.name.capitalize()
        attributes["body"] = type(name, (Reasoned,), {"__doc__": verb.help, **fields})
    return act_view(BASES.get(verb.name, TaskAct), verb, **attributes)


# By the last part of the address.
ACTS = {
    verb.name.replace("_", "-"): _view(verb)
    for verb in TASK_VERBS.values()
    if verb.for_many and verb.name not in AT_THE_TASK
}
ACTS["release"] = act_view(TaskView, VERBS["task", "release"])
