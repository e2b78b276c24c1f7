"""Schedules: list, show, create, edit and delete them; their verbs, next times and runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import schedules
from taskqueue.access.permissions import ENQUEUE, VIEW_SCHEDULES
from taskqueue.api.base import endpoint
from taskqueue.api.describing import serializer_for
from taskqueue.api.fields import Reasoned, Text
from taskqueue.api.problems import Problem, forbidden
from taskqueue.api.rules import RuleField
from taskqueue.api.schedule_bodies import RunAsked, ScheduleCreated, ScheduleEdited
from taskqueue.api.tasks.bodies import check_kept, check_kept_secrets, exposed_target
from taskqueue.api.views import (
    NextPage,
    OneView,
    Paged,
    act_view,
    page,
    rows_after,
)
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.redaction import REDACTED
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.schedules.editing import target_of
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.exceptions import ScheduleExists
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.monitoring.read_models.base import json_form
from taskqueue.monitoring.read_models.schedule import (
    ScheduleDetails,
    ShownOccurrence,
    ShownSchedule,
    schedule_details,
    shown_occurrences,
    shown_schedules,
)
from taskqueue.monitoring.reading import now

# The edit that enqueues nothing, and that every schedule accepts.
RESTING: Mapping[str, Any] = {"enabled": False}
ScheduleJSON = serializer_for(ShownSchedule, described={"rule": RuleField})
OneScheduleJSON = serializer_for(ScheduleDetails, described={"rule": RuleField})


class ScheduleQuery(Paged):
    """The filter of schedules."""

    task = Text(required=False, help_text="Only schedules of this task type or workflow.")
    source = serializers.ChoiceField(  # type: ignore[assignment]
        required=False, choices=[each.value for each in ScheduleSource]
    )


class Schedules(NextPage):
    """Schedules by name."""

    results = ScheduleJSON(many=True)


class ScheduleView(OneView):
    """One schedule. If-Match compares only what people edit: its next time changes by itself."""

    needs = {"GET": (VIEW_SCHEDULES,)}
    tag = "schedules"
    compared = ("pk", "changed_at", "removed_at", "paused_at")
    answers = {200: OneScheduleJSON}

    def find(self, key: str) -> Schedule:
        return schedules.get(key)

    def details(self, found: Schedule) -> ScheduleDetails:
        return schedule_details(found, self.request.user, now())

    def run(self, request: Request, key: str) -> Response:
        """Do the verb of this address: a task is made only of a type that REST may enqueue."""
        check = _check_exposed if ENQUEUE in self.verb.permissions else None
        return self.act(self.verb, key, check, **self.parameters)


def _check_exposed(row: Schedule) -> None:
    exposed_target(row.task_name, target_of(row))


class ScheduleList(ScheduleView):
    """All schedules."""

    needs = {
        "GET": (VIEW_SCHEDULES,),
        "POST": (VIEW_SCHEDULES, *SCHEDULE_VERBS["create"].permissions),
    }
    is_conditional = False

    @endpoint("listSchedules", answers={200: Schedules}, query=ScheduleQuery)
    def get(self, request: Request) -> Response:
        """Schedules by name."""
        # A request may be a graph, which is large.
        rows = Schedule.objects.using(database_alias()).order_by("name").defer("request")
        for parameter, column in (("source", "source"), ("task", "task_name")):
            if parameter in self.parameters:
                rows = rows.filter(**{column: self.parameters[parameter]})
        found = rows_after(rows, "name", self.parameters)
        return page(self, found, "name", lambda rows: shown_schedules(rows, request.user, now()))

    @endpoint(
        "createSchedule", answers={201: OneScheduleJSON}, body=ScheduleCreated, problems=(409,)
    )
    def post(self, request: Request) -> Response:
        """Create a schedule; its times begin now."""
        _check_call(self.parameters["task"], self.parameters, None)
        name = self.parameters["name"]

        def act() -> Response:
            try:
                schedules.create(by=request.user, **self.parameters)
            except ScheduleExists as error:
                raise Problem(409, "schedule_exists", str(error)) from None
            return self.answer(name, status=201, Location=self.address("schedule", name))

        return self.idempotent(act)


class ScheduleDetail(ScheduleView):
    """Looking at a schedule, changing and deleting it."""

    needs = {
        "GET": (VIEW_SCHEDULES,),
        "PATCH": (VIEW_SCHEDULES, *SCHEDULE_VERBS["disable"].permissions),
        "DELETE": (VIEW_SCHEDULES, *SCHEDULE_VERBS["delete"].permissions),
    }

    @endpoint("getSchedule", answers={200: OneScheduleJSON}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a schedule with its next times and its last runs."""
        return self.answer(name)

    @endpoint(
        "editSchedule",
        answers={200: OneScheduleJSON},
        body=ScheduleEdited,
        problems=(404, 409, 412),
    )
    def patch(self, request: Request, name: str) -> Response:
        """Edit a schedule; a new rule applies from now on, and another task needs new arguments.
        All edits but `{"enabled": false}` need the permission to enqueue. A schedule declared in
        code is edited there: 409.
        """
        edit, changes = SCHEDULE_VERBS["edit"], self.parameters
        if changes == {**RESTING, "reason": changes["reason"]}:
            return self.act(edit, name, **changes)
        if not edit.is_for(request.user):
            raise forbidden(request.user, edit.permissions)
        return self.act(edit, name, self._check, **changes)

    def _check(self, row: Schedule) -> None:
        check_changes(row, self.parameters)

    @endpoint("deleteSchedule", answers={204: None}, query=Reasoned, problems=(404, 409, 412, 422))
    def delete(self, request: Request, name: str) -> Response:
        """Delete it with the history of its runs; its tasks and workflows are kept."""
        return self.act(SCHEDULE_VERBS["delete"], name, **self.parameters)


def check_changes(row: Schedule, changes: Mapping[str, Any]) -> None:
    """Raise unless the API may enqueue what the schedule runs with these changes."""
    task = changes.get("task", row.task_name)
    if task == row.task_name:
        _check_call(task, changes, target_of(row))
        _check_kept(row, changes)
    else:
        _check_call(task, {"options": row.options, **changes}, None)


def _check_call(task: str, call: Mapping[str, Any], known: Target | None) -> None:
    """Raise unless the API may enqueue the task or workflow with these arguments."""
    target = exposed_target(task, known)
    if isinstance(target, BaseDefinition):
        check_kept(target, call.get("options", {}), at=("options",))
    values = [*call.get("args", ()), *call.get("kwargs", {}).values()]
    if REDACTED in values and target.options.sensitive:
        raise Problem(422, "redacted_value", f"Enter the values shown as {REDACTED} again.")


def _check_kept(row: Schedule, given: Mapping[str, Any]) -> None:
    target = target_of(row)
    if target is not None:
        check_kept_secrets(target, row.args, row.kwargs, given)


class ScheduleRun(ScheduleView):
    """Runs a schedule by hand."""

    answers = {202: ShownOccurrence}

    def run(self, request: Request, key: str) -> Response:
        """Run it, with its own arguments or with others."""
        return self.act(self.verb, key, self._check, **self.parameters)

    def _check(self, row: Schedule) -> None:
        _check_call(row.task_name, self.parameters, target_of(row))
        _check_kept(row, self.parameters)

    def outcome(self, verb: Verb, key: str, result: Any) -> Response:
        (shown,) = shown_occurrences([result], self.request.user)
        return Response(json_form(shown), status=202)


ACTS = {
    "run": act_view(ScheduleRun, SCHEDULE_VERBS["run_now"], called="run", body=RunAsked),
    "pause": act_view(ScheduleView, SCHEDULE_VERBS["pause"]),
    "resume": act_view(ScheduleView, SCHEDULE_VERBS["resume"]),
}
