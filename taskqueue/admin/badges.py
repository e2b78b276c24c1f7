"""Statuses and states as badges: a word in people's language, and a colour besides."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

WORDS: dict[str, Any] = {
    # Tasks
    "blocked": _("blocked"),
    "scheduled": _("scheduled"),
    "ready": _("ready"),
    "running": _("running"),
    "retrying": _("retrying"),
    "succeeded": _("succeeded"),
    "failed": _("failed"),
    "cancelled": _("cancelled"),
    # Attempts
    "lost": _("lost"),
    "stopped": _("stopped"),
    "returned": _("returned"),
    # Workers
    "active": pgettext_lazy("state", "active"),
    "quiet": _("quiet"),
    "draining": _("draining"),
    "stopping": _("stopping"),
    # Queues and schedules
    "paused": _("paused"),
    "unserved": _("no worker"),
    "disabled": _("disabled"),
    "removed": _("removed from code"),
    "trouble": _("has a problem"),
    "over": _("over"),
    "overdue": _("overdue"),
    # Occurrences and operations
    "waiting": _("waiting"),
    "enqueued": _("enqueued"),
    "ended": _("ended"),
    "skipped": _("skipped"),
    "finished": _("finished"),
}
LOOKS = {
    "unserved": "error",
    "trouble": "error",
    "overdue": "error",
    "enqueued": "ready",
    "ended": "finished",
}
"""Whose colour a word has that has none of its own."""


def badge(state: str, text: object = None) -> SafeString:
    """The state as a badge; `text` where another word says it better."""
    look = LOOKS.get(state, state) if state in WORDS else "other"
    shown = WORDS.get(state, state) if text is None else text
    return format_html('<span class="taskqueue-badge taskqueue-badge--{}">{}</span>', look, shown)
