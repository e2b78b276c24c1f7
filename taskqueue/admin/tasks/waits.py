"""Why a task waits, in words."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from taskqueue.admin.display import moment
from taskqueue.monitoring import waiting

SENTENCES: dict[str, Any] = {
    waiting.BLOCKED: gettext_lazy("It waits for other tasks of its workflow."),
    waiting.NOT_DUE: gettext_lazy("It is not due until {moment}."),
    waiting.RETRY_DUE: gettext_lazy("Its next attempt is due at {moment}."),
    waiting.QUEUE_PAUSED: gettext_lazy("The queue {subject} is paused."),
    waiting.UNSERVED: gettext_lazy("No live worker serves the queue {subject}."),
    waiting.NOT_TAKING: gettext_lazy(
        "The workers of the queue {subject} are quiet or about to end: they take nothing new."
    ),
    waiting.WORKERS_ABSENT: gettext_lazy(
        "Only certain workers may run it, and none of them lives: {subject}."
    ),
    waiting.UNKNOWN: gettext_lazy(
        "Since {moment} it has met only workers whose code does not know {subject}."
    ),
    waiting.IN_LINE: gettext_lazy("It is next when a worker of its queue has a free slot."),
}
PAUSED_UNTIL = gettext_lazy("The queue {subject} is paused until {moment}.")


def sentence(reason: waiting.Reason) -> SafeString:
    """The reason as a sentence."""
    text = SENTENCES[reason.code]
    if reason.code == waiting.QUEUE_PAUSED and reason.moment is not None:
        text = PAUSED_UNTIL
    return format_html(str(text), subject=reason.subject, moment=moment(reason.moment))


def why_sentences(task: Any) -> list[SafeString]:
    """Why the task waits; empty for one that does not."""
    return [sentence(reason) for reason in waiting.why_waiting(task)]
