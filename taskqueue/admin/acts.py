"""The buttons of queues, workers and schedules: each does one verb; refusals are messages."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.reasons import LONGEST_REASON, reason_of
from taskqueue.declarations.payload import storable
from taskqueue.engine.control.verb import Verb
from taskqueue.exceptions import TaskQueueError

LONGEST_NAME = 255
LONGEST_NOTE = LONGEST_REASON + 100


class ActsAdmin(ReadOnlyAdmin):
    """Verbs that are done to one row by its name."""

    def act(self, request: HttpRequest, verb: Verb, row: Any, **arguments: Any) -> bool:
        """Do it, and tell so or why not; whether it was done."""
        try:
            verb.act_by(request.user, row.name, reason=reason_of(request), **arguments)
        except TaskQueueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return False
        self.tell(request, verb, row)
        return True

    def tell(self, request: HttpRequest, verb: Verb, row: Any) -> None:
        """Tell that it was done."""
        self.note(request, row, verb.told(row.name))
        self.message_user(request, verb.told(row.name), messages.SUCCESS)

    def note(self, request: HttpRequest, row: Any, done: str) -> None:
        """Keep it, with the reason, in the admin's own history too."""
        reason = reason_of(request)
        note = f"{done} ({reason})" if reason else done
        shown = self.model(pk=row.pk, name=storable(row.name, limit=LONGEST_NAME))
        self.log_change(request, shown, storable(note, limit=LONGEST_NOTE))
