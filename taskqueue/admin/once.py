"""Buttons that make something: each page has an id for it, so that pressing twice acts once.

The form has the field `once` (`{% taskqueue_once %}` in templates). Its value is the id of the task
that is made, or of the request for a run of a schedule.
"""

from __future__ import annotations

import time
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext as _

from taskqueue.admin.acts import ReasonForm
from taskqueue.core.uuid7 import uuid7
from taskqueue.exceptions import TaskQueueError

# Seconds for which a page may stay open: its id becomes a task's id, and ids sort by time.
OLDEST = 24 * 3600
# Seconds by which the clock of the process that made the page may be ahead.
AHEAD = 300


class OnceForm(ReasonForm):
    """A list's choice of an action, with the id for what the action makes."""

    once = forms.CharField(label="", required=False, initial=uuid7, widget=forms.HiddenInput)


def once_of(request: HttpRequest) -> UUID | None:
    """Return the page's id for what a button makes; None if the page sent none.

    Raises `TaskQueueError`, in the user's language, if no page gave the id out recently.
    """
    given = request.POST.get("once", "")
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
