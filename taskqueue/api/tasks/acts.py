"""The addresses of verbs on one task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import ENQUEUE, VIEW_TASKS
from taskqueue.api.acts import OneView, act_view
from taskqueue.api.fields import Reasoned
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.bodies import check_call, check_each, exposed, is_exposed, not_exposed
from taskqueue.api.tasks.detail import TaskView
from taskqueue.api.tasks.option_fields import (
    OPTIONS,
    ChangeableOptions,
    ListOfAnything,
    NearMoment,
    ObjectField,
)
from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.locking import id_of, status_of
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Task
from taskqueue.monitoring.read_models.task import ShownTask

# Verbs that are methods of the task's own address.
AT_THE_TASK = ("update", "delete")


class Changes(ChangeableOptions):
    """The changes of an update; fields that are left out keep their values."""

    left_out = frozenset({"backoff"})  # It cannot be changed in the background.


# The field for a parameter, by its kind.
KINDS: Mapping[str, Any] = {"moment": NearMoment, "changes": Changes}


class TaskAct(TaskView):
    """A verb on one task."""

    def run(self, request: Request, key: str) -> Response:
        """Do the verb. Raises 403 where it would stop an attempt, and the user may not."""
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
            detail = "The task is running: to stop it needs the permission to stop tasks."
            raise Problem(403, "permission_denied", detail)


def _check_exposed(task: Task) -> None:
    if not is_exposed(task.name):
        raise not_exposed(task.name)


class Retry(Reasoned):
    """Nothing, or other arguments: then it is a new task, and the old one stays as it is."""

    args = ListOfAnything(required=False, help_text="Left out: those that it has.")
    kwargs = ObjectField(required=False)


class RetryAct(TaskAct):
    """Run it again, or a new task with other arguments."""

    body = Retry
    answers = {200: ShownTask, 201: ShownTask}

    def run(self, request: Request, key: str) -> Response:
        if self.parameters.keys() == {"reason"}:
            return super().run(request, key)
        verb = TASK_VERBS["retry_with"]
        if not verb.is_for(request.user):
            detail = "Other arguments need the permission to enqueue."
            raise Problem(403, "permission_denied", detail)
        return self.act(verb, key, self._check, **self.parameters)

    def _check(self, task: Task) -> None:
        _check_exposed(task)
        definition = exposed(task.name).using(unique_key=None)  # It holds none.
        call = {"args": task.args, "kwargs": task.kwargs} | self.parameters
        check_call(definition, call["args"], call["kwargs"])


class Duplicate(Reasoned, ChangeableOptions):
    """The options of the new task that differ from the old one."""


class DuplicateAct(TaskAct):
    """Enqueue another task like it."""

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
    return act_view(BASES.get(verb.name, TaskAct), verb, looks=(VIEW_TASKS,), **attributes)


# By the last part of the address.
ACTS = {
    verb.name.replace("_", "-"): _view(verb)
    for verb in TASK_VERBS.values()
    if verb.for_many and verb.name not in AT_THE_TASK
}
