"""The hidden field by which a button that is pressed twice does once what it does."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.core.uuid7 import uuid7
from taskqueue.exceptions import EnqueuedBefore, TaskQueueError

FIELD = "once"
OLDEST = 24 * 3600
"""Seconds that a page may have been open: its id becomes a task's, and ids sort by time."""
AHEAD = 300
"""Seconds by which the clock of who made the page may go before ours."""


def once_field() -> dict[str, Any]:
    """What a page shows it with."""
    return {FIELD: uuid7()}


def new_id_of(request: HttpRequest) -> UUID | None:
    """The id that the page has for the new task; None where it gave none.

    Raises `TaskQueueError`, in the user's language, for one that no page gave out lately.
    """
    given = request.POST.get(FIELD, "")
    if not given:
        return None
    try:
        found = UUID(given)
    except ValueError:
        found = UUID(int=0)
    age = time.time() - (found.int >> 80) / 1000
    if found.version != 7 or not -AHEAD <= age <= OLDEST:
        raise TaskQueueError(_("This form had expired and has been refreshed. Try again."))
    return found


def lead_to_first(
    admin: ReadOnlyAdmin, request: HttpRequest, found: EnqueuedBefore, name: str
) -> UUID:
    """Tell that it was done already; the task that was made then.

    Raises `TaskQueueError`, in the user's language, where that is a task of another name.
    """
    if found.name != name:
        raise TaskQueueError(_("This form was for another task and has been refreshed. Try again."))
    told = _("This was already done. Here is the task.")
    admin.message_user(request, told, messages.WARNING)
    return found.task_id
