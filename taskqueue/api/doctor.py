"""The current problems: notices of the dashboard, and findings of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import OPERATE, VIEW_TASKS, VIEW_WORKERS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Strict
from taskqueue.engine.connections import project_connection
from taskqueue.engine.examinations import request_examination
from taskqueue.monitoring.doctor import Severity, examine, visible_to, worst
from taskqueue.monitoring.notice import ERROR, WARNING
from taskqueue.monitoring.notice_texts import Code
from taskqueue.monitoring.notices import Situation, notices
from taskqueue.monitoring.notices import visible_to as visible_notices
from taskqueue.monitoring.read_models.base import about, from_row, from_rows, json_form

# The limit of each statement of an examination.
PATIENCE = "1s"
SEVERITIES = [severity.value for severity in Severity]


@dataclass(frozen=True, kw_only=True)
class NoticeShown:
    """A condition that needs attention."""

    code: str = about(choices=get_args(Code))
    level: str = about(choices=[WARNING, ERROR])
    subject: str = about("The queue, worker, schedule, task or task name; empty: everything.")
    count: int | None = about("Tasks, attempts or runs, by the code.")
    is_capped: bool = about("Whether there may be more than `count`.")
    example: str = about("The id of a task to look at; empty: none.")
    since: datetime | None = about("null: it is not known since when.")
    sentence: str = about("May contain text from users.")
    remedy: str


@dataclass(frozen=True, kw_only=True)
class NoticesShown:
    """The notices, errors first."""

    at: datetime
    examined_at: datetime | None = about(
        "When a worker last ran the doctor, whose findings are among the notices; null: never."
    )
    notices: list[NoticeShown]


class NoticeList(ApiView):
    """The notices of the dashboard."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "stats"

    @endpoint("listNotices", answers={200: NoticesShown})
    def get(self, request: Request) -> Response:
        """Return the notices of what needs attention now. Those of workers and schedules require
        the permission to view these.
        """
        situation = Situation()
        found = visible_notices(request.user, notices(situation))
        examined = situation.standing.examined
        shown = NoticesShown(
            at=situation.now,
            examined_at=None if examined is None else examined.at,
            notices=from_rows(NoticeShown, found),
        )
        return Response(json_form(shown))


@dataclass(frozen=True, kw_only=True)
class FindingShown:
    """The result of a check of the doctor, and what to do about it."""

    check: str = about("Such as `snapshots` or `queues`.")
    severity: str = about(choices=SEVERITIES)
    seen: str = about("May contain text from users.")
    remedy: str = about("Empty where all is well.")
    subject: str = about("The queue, worker, session or table that it is about; empty: none.")


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The findings, in the order of the checks."""

    worst: str = about("The severity of the worst finding.")
    findings: list[FindingShown]


class NoBody(Strict):
    """An empty object, or no body at all."""


class Doctor(ApiView):
    """The doctor."""

    needs = {"GET": (VIEW_TASKS, VIEW_WORKERS), "POST": (VIEW_TASKS, VIEW_WORKERS, OPERATE)}
    tag = "health"

    @endpoint("getDoctor", answers={200: Examination})
    def get(self, request: Request) -> Response:
        """Examine the settings, the database, its server and the workers. Findings about queues,
        schedules, workflows, limits, alert rules and webhooks require the permission to view
        these. Each statement may take a second.
        """
        found = visible_to(request.user, examine(patience=PATIENCE))
        shown = Examination(
            worst=worst(found).value,
            findings=[
                from_row(FindingShown, finding, severity=finding.severity.value)
                for finding in found
            ],
        )
        return Response(json_form(shown))

    @endpoint("requestExamination", answers={202: None}, body=NoBody)
    def post(self, request: Request) -> Response:
        """Have a running worker run the doctor within seconds. Its findings are then among the
        notices; `notices/` says when that was.
        """
        request_examination(project_connection())
        return Response(status=202)
