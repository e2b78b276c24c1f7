"""A task's history in words, and as one strip on which each part is as long as it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.display import moment, short_duration
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.monitoring.history import MOST_ROWS, NOW, Event, Stretch, What, seconds_between

LONGEST_DETAIL = 300
WIDTH, HEIGHT, LEAST = 1000.0, 14, 4.0
TITLES: dict[str, Any] = {
    What.ENQUEUED: gettext_lazy("Enqueued"),
    What.ATTEMPT_STARTED: gettext_lazy("Attempt %(number)s started, after waiting"),
    What.STOP_REQUESTED: gettext_lazy("Asked to stop"),
    What.STOP_SEEN: gettext_lazy("The task received the stop request"),
    What.WEDGED: gettext_lazy("Seems wedged: no sign of progress"),
    What.RUNNING: gettext_lazy("Running"),
    What.WAITING: gettext_lazy("Waiting"),
}
ATTEMPT_ENDS: dict[str, Any] = {
    LeaseStatus.SUCCEEDED: gettext_lazy("Attempt %(number)s succeeded"),
    LeaseStatus.FAILED: gettext_lazy("Attempt %(number)s failed"),
    LeaseStatus.LOST: gettext_lazy("Attempt %(number)s was lost"),
    LeaseStatus.STOPPED: gettext_lazy("Attempt %(number)s was stopped"),
    LeaseStatus.RETURNED: gettext_lazy("Attempt %(number)s was returned"),
}
ENDS: dict[str, Any] = {
    TaskStatus.SUCCEEDED: gettext_lazy("Succeeded after a total of"),
    TaskStatus.FAILED: gettext_lazy("Failed after a total of"),
    TaskStatus.CANCELLED: gettext_lazy("Cancelled after a total of"),
}
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
}


def shown_events(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The events as the template takes them."""
    return [
        {
            "kind": "now" if event.what in NOW else LOOKS.get(event.what, event.status),
            "title": _title(event),
            "time": moment(event.at),
            "duration": None if event.seconds is None else short_duration(event.seconds),
            "who": event.who,
            "detail": event.detail
            if event.what is What.STOP_REQUESTED
            else error_line(event.error_class, event.detail),
        }
        for event in events
    ]


def _title(event: Event) -> Any:
    if event.what is What.ACTION:
        return ACTIONS.get(event.verb, event.verb)
    if event.what is What.ENDED:
        return ENDS[event.status]
    if event.what is What.ATTEMPT_ENDED:
        title = ATTEMPT_ENDS.get(event.status, ATTEMPT_ENDS[LeaseStatus.RETURNED])
    else:
        title = TITLES[event.what]
    return title % {"number": event.attempt}


def error_line(error_class: str, message: str) -> str:
    """An error in a line or two."""
    short = Truncator(message).chars(LONGEST_DETAIL)
    return ": ".join(filter(None, (error_class, short)))


def bar(stretches: Sequence[Stretch]) -> SafeString | str:
    """The stretches as a drawing; empty where there are none."""
    if not stretches:
        return ""
    first = min(stretch.start for stretch in stretches)
    whole = max(seconds_between(first, max(stretch.end for stretch in stretches)), 1e-6)
    rows = 1 + max(stretch.row for stretch in stretches)
    drawing = SafeString("")
    for stretch in stretches:
        left = min(seconds_between(first, stretch.start) / whole * WIDTH, WIDTH - LEAST)
        width = min(max(stretch.seconds / whole * WIDTH, LEAST), WIDTH - left)
        drawing += format_html(
            '<rect class="taskqueue-part taskqueue-part--{}" x="{}" y="{}" width="{}" height="{}">'
            "<title>{}</title></rect>",
            stretch.kind,
            f"{left:.1f}",
            stretch.row * (HEIGHT + 2),
            f"{width:.1f}",
            HEIGHT,
            _words(stretch),
        )
    return format_html(
        '<svg class="taskqueue-bar" viewBox="0 0 {width} {height}" height="{height}" '
        'preserveAspectRatio="none" role="img" aria-label="{label}">{drawing}</svg>',
        width=int(WIDTH),
        height=rows * (HEIGHT + 2) - 2,
        label=", ".join(map(_words, stretches[-MOST_ROWS:])),
        drawing=drawing,
    )


def _words(stretch: Stretch) -> str:
    words = {"wait": _("waited"), "idle": _("finished")}
    word = words.get(stretch.kind, _("ran"))  # Not within the f-string: there nobody finds it.
    return f"{word} {short_duration(stretch.seconds)}"
