"""Verbs on a schedule: run now, pause, resume; its next times and its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import schedules
from taskqueue.access.permissions import ENQUEUE, VIEW_OCCURRENCES, VIEW_SCHEDULES
from taskqueue.api.acts import Act, act_view
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Moment, Strict
from taskqueue.api.paging import Digits, Paged, page, page_of, rows_after
from taskqueue.api.rules import MOST_TIMES
from taskqueue.api.schedules import OneScheduleJSON, answer, seen_and
from taskqueue.api.serializing import serializer_for
from taskqueue.api.tasks.bodies import exposed
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.schedules.reading import rule_text
from taskqueue.engine.verbs import SCHEDULE_VERBS
from taskqueue.models import Occurrence, Schedule
from taskqueue.monitoring.read_models.schedule import (
    ShownOccurrence,
    occurrences_of,
    shown_occurrences,
    times_to_come,
)
from taskqueue.monitoring.reading import now

OccurrenceJSON = serializer_for(ShownOccurrence)


class HowMany(Strict):
    """The number of times."""

    count = Digits(required=False, default=5, min_value=1, max_value=MOST_TIMES)


class TimesToCome(serializers.Serializer[Any]):
    """The next times of a schedule."""

    rule_text = serializers.CharField(help_text="The rule in words.")
    times = serializers.ListField(
        child=Moment(),
        help_text="In UTC, as if it were not paused; at most one if it waits for a run to finish.",
    )


class SchedulePreview(ApiView):
    """The next times of a schedule."""

    needs = {"GET": (VIEW_SCHEDULES,)}
    tag = "schedules"

    @describe("previewSchedule", answers={200: TimesToCome}, query=HowMany, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return its next times."""
        count = self.validated_query(request, HowMany)["count"]
        row = schedules.get(name)
        times = times_to_come(row, now(), count=count)
        return Response(TimesToCome({"rule_text": rule_text(row), "times": times}).data)


Runs = page_of(ShownOccurrence, "Runs, the newest first.")


class ScheduleRuns(ApiView):
    """The runs of a schedule."""

    needs = {"GET": (VIEW_SCHEDULES, VIEW_OCCURRENCES)}
    tag = "schedules"
    has_etag = True

    @describe("listRuns", answers={200: Runs}, query=Paged, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Its runs and the times that were skipped, the newest first."""
        asked = self.validated_query(request, Paged)
        found = rows_after(occurrences_of(schedules.get(name)), "-nominal_at", asked, _moment)

        def show(rows: Sequence[Occurrence]) -> list[ShownOccurrence]:
            return shown_occurrences(rows, request.user)

        shown = page(request, Runs, asked, found, "nominal_at", show)
        return self.shown(request, shown)


def _moment(text: str) -> datetime:
    return Moment().to_internal_value(text)  # type: ignore[no-any-return]


class ScheduleAct(Act):
    """A verb on one schedule."""

    tag = "schedules"
    answers: ClassVar[Mapping[int, Any]] = {200: OneScheduleJSON}

    def seen(self, request: Request, key: str) -> Seen:
        makes_tasks = ENQUEUE in self.verb.permissions
        return seen_and(request, _check_exposed if makes_tasks else None)

    def answer(self, request: Request, key: str, result: Any) -> Response:
        return answer(self, request, schedules.get(key))


class ScheduleRun(ScheduleAct):
    """Running a schedule by hand."""

    answers = {202: OccurrenceJSON}

    def answer(self, request: Request, key: str, result: Any) -> Response:
        (shown,) = shown_occurrences([result], request.user)
        return Response(OccurrenceJSON(shown).data, status=202)


def _check_exposed(row: Schedule) -> None:
    exposed(row.task_name, field="task")


LOOKS = (VIEW_SCHEDULES,)
ACTS = {
    "run": act_view(ScheduleRun, SCHEDULE_VERBS["run_now"], looks=LOOKS, called="run"),
    "pause": act_view(ScheduleAct, SCHEDULE_VERBS["pause"], looks=LOOKS),
    "resume": act_view(ScheduleAct, SCHEDULE_VERBS["resume"], looks=LOOKS),
}
