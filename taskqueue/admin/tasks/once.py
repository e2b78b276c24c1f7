"""The hidden field that makes a button pressed twice act once."""

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
"""Seconds for which a page may stay open: its id becomes a task's id, and ids sort by time."""
AHEAD = 300
"""Seconds by which the clock of the process that made the page may be ahead."""


def once_field() -> dict[str, Any]:
    """Return the context with which a page shows the field."""
    return {FIELD: uuid7()}


def new_id_of(request: HttpRequest) -> UUID | None:
    """Return the page's id for the new task; None if it sent none.

    Raises `TaskQueueError`, in the user's language, if no page gave the id out recently.
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
    """Say that it was already done, and return the id of the task that was made then.

    Raises `TaskQueueError`, in the user's language, if that task has another name.
    """
    if found.name != name:
        raise TaskQueueError(_("This form was for another task and has been refreshed. Try again."))
    told = _("This was already done. Here is the task.")
    admin.message_user(request, told, messages.WARNING)
    return found.task_id
