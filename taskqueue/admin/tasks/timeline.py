"""A task's history in words, and as one strip on which each part is as long as it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.display import short_duration
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.monitoring.history import MOST_ROWS, NOW, Event, Stretch, What, seconds_between

WIDTH, LEAST = 1000.0, 4.0
ROW = 16
"""The height of a row, with the gap below it."""
TITLES: dict[tuple[What, str], Any] = {
    (What.ENQUEUED, ""): gettext_lazy("Enqueued"),
    (What.ATTEMPT_STARTED, ""): gettext_lazy("Attempt %(number)s started, after waiting"),
    (What.STOP_REQUESTED, ""): gettext_lazy("Asked to stop"),
    (What.STOP_SEEN, ""): gettext_lazy("The task received the stop request"),
    (What.WEDGED, ""): gettext_lazy("Seems wedged: no sign of progress"),
    (What.RUNNING, ""): gettext_lazy("Running"),
    (What.WAITING, ""): gettext_lazy("Waiting"),
    (What.ATTEMPT_ENDED, LeaseStatus.SUCCEEDED): gettext_lazy("Attempt %(number)s succeeded"),
    (What.ATTEMPT_ENDED, LeaseStatus.FAILED): gettext_lazy("Attempt %(number)s failed"),
    (What.ATTEMPT_ENDED, LeaseStatus.LOST): gettext_lazy("Attempt %(number)s was lost"),
    (What.ATTEMPT_ENDED, LeaseStatus.STOPPED): gettext_lazy("Attempt %(number)s was stopped"),
    (What.ATTEMPT_ENDED, LeaseStatus.RETURNED): gettext_lazy("Attempt %(number)s was returned"),
    (What.ENDED, TaskStatus.SUCCEEDED): gettext_lazy("Succeeded after a total of"),
    (What.ENDED, TaskStatus.FAILED): gettext_lazy("Failed after a total of"),
    (What.ENDED, TaskStatus.CANCELLED): gettext_lazy("Cancelled after a total of"),
}
"""By the kind of the event, and the status that it ended with."""
ACTIONS: dict[str, Any] = {
    **{verb.name: verb.past for verb in TASK_VERBS.values()},
    "enqueue": gettext_lazy("Enqueued manually"),
}
LOOKS = {
    What.ENQUEUED: "start",
    What.ATTEMPT_STARTED: "start",
    What.STOP_REQUESTED: "act",
    What.STOP_SEEN: "act",
    What.WEDGED: "lost",
    What.ACTION: "act",
    **dict.fromkeys(NOW, "now"),
}
"""Of other events the status is the look."""


def shown_events(events: Sequence[Event]) -> list[tuple[str, str, Event]]:
    """Return the look, the title and the event of each."""
    return [(LOOKS.get(event.what, event.status), _title(event), event) for event in events]


def _title(event: Event) -> str:
    if event.what is What.ACTION:
        return str(ACTIONS.get(event.verb, event.verb))
    return str(TITLES[event.what, event.status]) % {"number": event.attempt}


def bar(stretches: Sequence[Stretch]) -> dict[str, Any]:
    """Lay the stretches out as rectangles; empty where there are none."""
    if not stretches:
        return {}
    first = min(stretch.start for stretch in stretches)
    whole = max(seconds_between(first, max(stretch.end for stretch in stretches)), 1e-6)
    parts = []
    for stretch in stretches:
        left = min(seconds_between(first, stretch.start) / whole * WIDTH, WIDTH - LEAST)
        width = min(max(stretch.seconds / whole * WIDTH, LEAST), WIDTH - left)
        place = {"left": f"{left:.1f}", "top": stretch.row * ROW, "width": f"{width:.1f}"}
        parts.append({"kind": stretch.kind, "words": _words(stretch), **place})
    return {
        "parts": parts,
        "height": (1 + max(stretch.row for stretch in stretches)) * ROW - 2,
        "label": ", ".join(map(_words, stretches[-MOST_ROWS:])),
    }


def _words(stretch: Stretch) -> str:
    words = {"wait": _("waited"), "idle": _("finished")}
    word = words.get(stretch.kind, _("ran"))  # Not within the f-string: there nobody finds it.
    return f"{word} {short_duration(stretch.seconds)}"
