"""The addresses of verbs on one task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.acts import Act, act_view
from taskqueue.api.fields import Reasoned, Text
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.bodies import check_call, check_each, check_exposed, exposed
from taskqueue.api.tasks.conditions import TaskView, answer_now, id_of, steps_of
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
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.exceptions import TransitionRefused
from taskqueue.results.reading import row_of

AT_THE_TASK = ("update", "delete")
"""Verbs that are methods of the task's own address."""


class Changes(ChangeableOptions):
    """The changes of an update; fields that are left out keep their values."""

    left_out = frozenset({"backoff"})  # It cannot be changed in the background.


KINDS: Mapping[str, Any] = {"moment": NearMoment, "changes": Changes}
"""The field for a parameter, by its kind."""


class TaskAct(TaskView, Act):
    """A verb on one task."""

    verb: ClassVar[Any]
    answers = {200: TaskJSON}

    def key_of(self, text: str) -> UUID:
        return id_of(text)

    def check(self, request: Request, key: UUID, given: dict[str, Any]) -> None:
        check_each({name: given[name] for name in given if name == "run_after"})
        self._refuse_to_stop(request, key)

    def part(self, row: Any) -> str:
        return steps_of(row)

    def done(self, request: Request, key: UUID, reason: str, given: Mapping[str, Any]) -> Response:
        try:
            return super().done(request, key, reason, given)
        except TransitionRefused:
            self._refuse_to_stop(request, key)  # It may have started meanwhile.
            raise

    def _refuse_to_stop(self, request: Request, key: UUID) -> None:
        if not self.verb.leaves_out_running(request.user):
            return
        if status_of(project_connection(), key) == TaskStatus.RUNNING:
            told = "The task is running: to stop it needs the permission to stop tasks."
            raise Problem(403, "permission_denied", told)

    def answer(self, request: Request, key: UUID, result: Any) -> Response:
        """201 and the new task if there is one; 202 while an attempt is asked to stop."""
        if isinstance(result, UUID):
            return answer_now(request, result, status=201, is_new=True)
        return answer_now(request, key, status=202 if result == TaskStatus.RUNNING else 200)


class StopAct(TaskAct):
    """A verb that may ask an attempt to stop: then 202."""

    answers = {200: TaskJSON, 202: TaskJSON}


class Retry(Reasoned):
    """Nothing, or other arguments: then it is a new task, and the old one stays as it is."""

    args = ListOfAnything(required=False, help_text="Left out: those that it has.")
    kwargs = ObjectField(required=False)


class RetryAct(TaskAct):
    """Run it again, or a new task with other arguments."""

    body = Retry
    answers = {200: TaskJSON, 201: TaskJSON}

    def check(self, request: Request, key: UUID, given: dict[str, Any]) -> None:
        if given and not TASK_VERBS["retry_with"].is_for(request.user):
            told = "Other arguments need the permission to enqueue."
            raise Problem(403, "permission_denied", told)

    def done(self, request: Request, key: UUID, reason: str, given: Mapping[str, Any]) -> Response:
        if not given:
            return super().done(request, key, reason, given)
        task = row_of(key)
        check_exposed(task.name)
        definition = exposed(task.name).using(unique_key=None)  # It holds none.
        check_call(definition, given.get("args", task.args), given.get("kwargs", task.kwargs))
        new_id = TASK_VERBS["retry_with"].act_by(
            request.user, key, reason=reason, seen=self.seen(request, key), **given
        )
        return self.answer(request, key, new_id)


class Duplicate(ChangeableOptions):
    """The options of the new task that differ from the old one."""

    reason = Text(required=False, default="", allow_blank=True, max_length=1000)


class DuplicateAct(TaskAct):
    """Enqueue another task like it."""

    body = Duplicate
    answers = {201: TaskJSON}
    scope = "enqueue"

    def check(self, request: Request, key: UUID, given: dict[str, Any]) -> None:
        check_each({name: given[name] for name in CHANGEABLE if name in given})

    def done(self, request: Request, key: UUID, reason: str, given: Mapping[str, Any]) -> Response:
        check_exposed(row_of(key).name)
        return super().done(request, key, reason, given)


BASES: Mapping[str, type[TaskAct]] = {"retry": RetryAct, "duplicate": DuplicateAct}


def _base(verb: TaskVerb) -> type[TaskAct]:
    """The view that the verb is made from, with a body for its parameters."""
    base = BASES.get(verb.name, StopAct if verb.ends_attempt else TaskAct)
    if not verb.parameters:
        return base
    fields = {each.name: KINDS[each.kind]() for each in verb.parameters}
    body = type(verb.name.capitalize(), (Reasoned,), {"__doc__": verb.help, **fields})
    return type(f"{body.__name__}Act", (base,), {"body": body})


ACTS: dict[str, type[Act]] = {
    verb.name.replace("_", "-"): act_view(_base(verb), verb, looks=(VIEW_TASKS,))
    for verb in TASK_VERBS.values()
    if verb.for_many and verb.name not in AT_THE_TASK
}
"""By the last part of the address."""
