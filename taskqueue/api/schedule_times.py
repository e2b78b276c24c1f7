"""The next times of a schedule, and its runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import schedules
from taskqueue.access.permissions import VIEW_OCCURRENCES, VIEW_SCHEDULES
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Moment, Strict
from taskqueue.api.rules import MOST_TIMES
from taskqueue.api.views import Digits, Paged, page, page_of, rows_after
from taskqueue.engine.schedules.reading import rule_text
from taskqueue.monitoring.read_models.base import about, json_form
from taskqueue.monitoring.read_models.schedule import (
    ShownOccurrence,
    occurrences_of,
    shown_occurrences,
    times_to_come,
)
from taskqueue.monitoring.reading import now


class HowMany(Strict):
    """The number of times."""

    count = Digits(default=5, min_value=1, max_value=MOST_TIMES)


@dataclass(frozen=True, kw_only=True)
class TimesToCome:
    """The next times of a schedule."""

    rule_text: str = about("The rule in words.")
    times: list[datetime] = about(
        "When its next runs start, with its jitter, in UTC, as if it were not paused; at most one"
        " if it waits for a run to finish."
    )


class SchedulePreview(ApiView):
    """The next times of a schedule."""

    needs = {"GET": (VIEW_SCHEDULES,)}
    tag = "schedules"

    @endpoint("previewSchedule", answers={200: TimesToCome}, query=HowMany, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return its next times."""
        row = schedules.get(name)
        times = times_to_come(row, now(), count=self.parameters["count"])
        return Response(json_form(TimesToCome(rule_text=rule_text(row), times=times)))


Runs = page_of(ShownOccurrence, "Runs, the newest first.")


class ScheduleRuns(ApiView):
    """The runs of a schedule."""

    needs = {"GET": (VIEW_SCHEDULES, VIEW_OCCURRENCES)}
    tag = "schedules"
    has_etag = True

    @endpoint("listRuns", answers={200: Runs}, query=Paged, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Its runs and the times that were skipped, the newest first."""
        runs = occurrences_of(schedules.get(name))
        found = rows_after(runs, "-nominal_at", self.parameters, Moment().to_internal_value)
        return page(self, found, "nominal_at", lambda rows: shown_occurrences(rows, request.user))
