"""Schedules: list, show, create, edit and delete them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import schedules
from taskqueue.access.permissions import VIEW_SCHEDULES
from taskqueue.api.addresses import address
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.etags import part_of, seen_as
from taskqueue.api.fields import Anything, Flag, Reasoned, Seconds, Strict, Text, Whole
from taskqueue.api.paging import NextPage, Paged, page, rows_after
from taskqueue.api.problems import Problem
from taskqueue.api.rules import RuleField
from taskqueue.api.serializing import serializer_for
from taskqueue.api.tasks.bodies import check_kept, exposed
from taskqueue.api.tasks.option_fields import StoredOptions
from taskqueue.core.policies import Missed, Overlap
from taskqueue.declarations.redaction import REDACTED
from taskqueue.declarations.scheduled import LONGEST_NAME, MOST_FAILURES
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.verbs import SCHEDULE_VERBS
from taskqueue.exceptions import ScheduleExists
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.monitoring.read_models.schedule import (
    ScheduleDetails,
    ShownSchedule,
    schedule_details,
    shown_schedules,
)
from taskqueue.monitoring.reading import now

RESTING: Mapping[str, Any] = {"enabled": False}
"""The edit that enqueues nothing, and that every schedule accepts."""


ScheduleJSON = serializer_for(ShownSchedule, described={"rule": RuleField})
OneScheduleJSON = serializer_for(ScheduleDetails, described={"rule": RuleField})


class ScheduleQuery(Paged):
    """The filter of schedules."""

    task = Text(required=False, help_text="Only schedules of this task type.")
    source = serializers.ChoiceField(  # type: ignore[assignment]
        required=False, choices=[each.value for each in ScheduleSource]
    )


class Schedules(NextPage):
    """Schedules by name."""

    results = ScheduleJSON(many=True)


class ScheduleEdited(Reasoned):
    """The changes; fields that are left out keep their values."""

    task = Text(required=False, help_text="The name of a task type.")
    rule = RuleField(required=False)
    args = serializers.ListField(child=Anything(allow_null=True), required=False)
    kwargs = serializers.DictField(child=Anything(allow_null=True), required=False)
    options = StoredOptions(required=False, help_text="Replace the options of the task type.")
    missed = serializers.ChoiceField(
        choices=[each.value for each in Missed], required=False,
        help_text="How to handle missed runs: times that passed while no worker ran.",
    )  # fmt: skip
    missed_window = Seconds(
        required=False, allow_null=True, min_value=1,
        help_text="For `missed: window`: how late a run may start.",
    )  # fmt: skip
    overlap = serializers.ChoiceField(
        choices=[each.value for each in Overlap], required=False,
        help_text="What to do at a time at which an earlier run has not finished.",
    )  # fmt: skip
    pause_after_failures = Whole(
        required=False, allow_null=True, min_value=1, max_value=MOST_FAILURES
    )
    enabled = Flag(required=False)


class ScheduleCreated(ScheduleEdited):
    """A new schedule."""

    name = Text(max_length=LONGEST_NAME, help_text="Unique, without `/`; it cannot be changed.")
    task = Text(help_text="The name of a task type.")
    rule = RuleField()


class Why(Strict):
    """The reason, for the audit."""

    reason = Text(required=False, default="", allow_blank=True, max_length=1000)


class ScheduleList(ApiView):
    """All schedules."""

    needs = {
        "GET": (VIEW_SCHEDULES,),
        "POST": (VIEW_SCHEDULES, *SCHEDULE_VERBS["create"].permissions),
    }
    tag = "schedules"
    has_etag = True

    @describe("listSchedules", answers={200: Schedules}, query=ScheduleQuery)
    def get(self, request: Request) -> Response:
        """Schedules by name."""
        asked = self.validated_query(request, ScheduleQuery)
        rows = Schedule.objects.using(database_alias()).order_by("name")
        if "source" in asked:
            rows = rows.filter(source=asked["source"])
        if "task" in asked:
            rows = rows.filter(task_name=asked["task"])
        found = rows_after(rows, "name", asked)

        def show(rows: Sequence[Schedule]) -> list[ShownSchedule]:
            return shown_schedules(rows, request.user, now())

        return self.shown(request, page(request, Schedules, asked, found, "name", show))

    @describe(
        "createSchedule", answers={201: OneScheduleJSON}, body=ScheduleCreated, problems=(409,)
    )
    def post(self, request: Request) -> Response:
        """Create a schedule; its times begin now."""
        given = self.validated_body(request, ScheduleCreated)
        _check_call(given["task"], given)
        name = given.pop("name")

        def act() -> Response:
            try:
                made = schedules.create(name, by=request.user, **given)
            except ScheduleExists as error:
                raise Problem(409, "schedule_exists", str(error)) from None
            place = address(request, "schedule", name)
            return answer(self, request, made, status=201, Location=place)

        return self.idempotent(request, act)


class ScheduleDetail(ApiView):
    """One schedule."""

    needs = {
        "GET": (VIEW_SCHEDULES,),
        "PATCH": (VIEW_SCHEDULES, *SCHEDULE_VERBS["disable"].permissions),
        "DELETE": (VIEW_SCHEDULES, *SCHEDULE_VERBS["delete"].permissions),
    }
    tag = "schedules"
    has_etag = True
    is_conditional = True

    @describe("getSchedule", answers={200: OneScheduleJSON}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a schedule with its next times and its last runs."""
        self.validated_query(request)
        return answer(self, request, schedules.get(name))

    @describe(
        "editSchedule", answers={200: OneScheduleJSON}, body=ScheduleEdited,
        problems=(404, 409, 412),
    )  # fmt: skip
    def patch(self, request: Request, name: str) -> Response:
        """Edit a schedule; a new rule applies from now on, and another task needs new arguments.
        All edits but `{"enabled": false}` need the permission to enqueue. A schedule declared in
        code is edited there: 409.
        """
        given = self.validated_body(request, ScheduleEdited)
        edits = {each: value for each, value in given.items() if each != "reason"}
        may_make_tasks = edits != RESTING
        if may_make_tasks and not SCHEDULE_VERBS["edit"].is_for(request.user):
            raise PermissionDenied

        def check(row: Schedule) -> None:
            task = given.get("task", row.task_name)
            stored = {} if task == row.task_name else {"options": row.options}
            _check_call(task, {**stored, **given})

        def act() -> Response:
            seen = seen_and(request, check if may_make_tasks else None)
            edited = schedules.edit(name, by=request.user, seen=seen, **given)
            return answer(self, request, edited)

        return self.idempotent(request, act)

    @describe("deleteSchedule", answers={204: None}, query=Why, problems=(404, 409, 412, 422))
    def delete(self, request: Request, name: str) -> Response:
        """Delete it with the history of its runs; its tasks are kept."""
        given = self.validated_query(request, Why)

        def act() -> Response:
            seen = seen_and(request)
            schedules.delete(name, by=request.user, reason=given["reason"], seen=seen)
            return Response(status=204)

        return self.idempotent(request, act)


def answer(
    view: ApiView, request: Request, row: Schedule, *, status: int = 200, **headers: str
) -> Response:
    """Answer with the schedule. If-Match compares only what people edit: its next time changes by
    itself.
    """
    whole = OneScheduleJSON(schedule_details(row, request.user, now())).data
    return view.shown(request, whole, status=status, headers=headers, part=_part(row))


def _part(row: Schedule) -> str:
    return part_of([row.pk, row.changed_at, row.removed_at, row.paused_at])


def seen_and(request: Request, check: Callable[[Schedule], None] | None = None) -> Seen:
    """Return what If-Match says of the schedule, as verbs take it, with a check of the row.

    The verb calls it with the row locked, so that what is checked stays until it is done.
    """
    is_seen = seen_as(request, _part)

    def test(row: Schedule) -> bool:
        if callable(is_seen) and not is_seen(row):
            return False
        if check is not None:
            check(row)
        return True

    return test


def _check_call(task: str, given: Mapping[str, Any]) -> None:
    """Raise unless the API may enqueue the task with these arguments."""
    definition = exposed(task, field="task")
    check_kept(definition, given.get("options", {}), at=("options",))
    values = [*given.get("args", ()), *given.get("kwargs", {}).values()]
    if REDACTED in values and definition.options.sensitive:
        raise Problem(422, "redacted_value", f"Enter the values shown as {REDACTED} again.")
