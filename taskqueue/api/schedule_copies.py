"""Create a copy of a schedule."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import schedules
from taskqueue.access.permissions import VIEW_SCHEDULES
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Text
from taskqueue.api.problems import Problem
from taskqueue.api.schedule_bodies import ScheduleEdited
from taskqueue.api.schedules import OneScheduleJSON, ScheduleView, check_changes
from taskqueue.declarations.scheduled import LONGEST_NAME
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.exceptions import ScheduleExists


class ScheduleCopied(ScheduleEdited):
    """The name of the copy, and what is different in it; other fields are as in the original."""

    name = Text(max_length=LONGEST_NAME, help_text="Unique, without `/`; it cannot be changed.")


class ScheduleCopy(ScheduleView):
    """Copies a schedule."""

    needs = {"POST": (VIEW_SCHEDULES, *SCHEDULE_VERBS["create"].permissions)}
    is_conditional = False

    @endpoint(
        "copySchedule",
        answers={201: OneScheduleJSON},
        body=ScheduleCopied,
        problems=(404, 409),
    )
    def post(self, request: Request, name: str) -> Response:
        """Create a schedule that is like this one, which may be declared in code. Its times begin
        now; another task needs new arguments.
        """
        changes = dict(self.parameters)
        copy = changes.pop("name")

        def act() -> Response:
            check_changes(self.find(name), changes)
            try:
                schedules.copy(name, copy, by=request.user, **changes)
            except ScheduleExists as error:
                raise Problem(409, "schedule_exists", str(error)) from None
            return self.answer(copy, status=201, Location=self.address("schedule", copy))

        return self.idempotent(act)
