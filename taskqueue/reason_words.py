"""Translating the reasons that the engine stores; reasons that people wrote are not changed.

The engine writes them in English, because later readers may use other languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from taskqueue.display import status_word
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.monitoring.why.reasons import Reason

# The first one that matches is used.
TEMPLATES = (
    _("declared in code"),
    _("no longer declared in code"),
    _("1 run failed."),
    _("{number} runs failed in a row."),
    _("Missed; the latest one makes up for it."),
    _("Missed by more than {seconds} s."),
    _("Missed: nobody served the schedule in time."),
    _("The run of {time} has not ended."),
    _("The run of {time} waits already."),
    _("The run of {time} has come."),
    _("Its unique key is held by task {task}."),
    _("Its unique key is held by workflow {task}."),
    _("No code declares the schedule any more."),
    _("The schedule is not enabled."),
    _("Paused before it was served."),
    _("Paused by {who}: {reason}"),
    _("Paused by {who}."),
    _("Paused: {reason}"),
    _("Paused."),
    # The trouble of a schedule, a worker or a workflow.
    _("Not served: {error}"),
    _("Children do not start ({end}): {error}"),
    _("Callback {call}: {error}"),
    # For steps of workflows.
    _("A step that it depends on did not succeed."),
    _("A step failed."),
    _("Its condition was false."),
    _("Its step was not released."),
    _("Resolved by hand."),
    _("The workflow was stopped."),
    # For deliveries of webhooks.
    _("The receiver answered {status}."),
    _("No delivery has succeeded since {moment} UTC."),
    _("No answer came in time."),
    _("The certificate is not valid: {error}."),
    _("TLS failed: {error}."),
    _("The connection failed: {error}."),
    _("The answer is not HTTP ({error})."),
    _("The host has no address."),
    _("The host is not known: {error}."),
    _("The host was not resolved in time."),
    _("The delivery is deleted, or another task sends it."),
    _("The delivery does not wait any more."),
    _("The endpoint is disabled."),
    _("The delivery is deleted or cancelled, or another task sends it."),
)
# For details of audit entries.
DETAILS = (
    _("until {time}"),
    _("to {time}"),
    _("as {id}"),
    _("of {id}"),
    _("with other arguments, as {id}"),
    _("published again"),
    _("published again: arguments, time, named options"),
    _("behind task {id}"),
    _("with workflow {id}"),
    _("task {id}"),
    _("workflow {id}"),
    _("waits"),
    _("task {id}, with other arguments"),
    _("workflow {id}, with other arguments"),
    _("waits, with other arguments"),
    _("since {time}; operation {id}"),
    _("another search"),
    _("shared"),
    _("no longer shared"),
    _("arguments changed"),
    _("{verb}: 1 chosen task"),
    _("{verb}: {number} chosen tasks"),
    _("{verb}: by a filter"),
    _("{verb}: by a search for arguments"),
    _("{verb}: by a search for workers"),
    _("{verb}: by a search for arguments and workers"),
    _("{verb}: by a filter of arguments"),
    _("{verb}: by a filter of workers"),
    _("{verb}: by a filter of arguments and workers"),
)
# Patterns of the gaps; other gaps match any text.
GAPS = {
    "number": r"[\d,]+",
    "seconds": r"\S+",
    "time": r"\S+",
    "task": r"\S+",
    "id": r"[0-9a-f-]{32,36}",
    "verb": r"\w+",
}


def sentence_of(reason: Reason, show: Callable[[Any], Any]) -> SafeString:
    """Return why a task waits as a sentence; its values are formatted by `show`."""
    values = reason.values(show)
    if "status" in values:
        values["status"] = status_word(values["status"])
    if "trouble" in values:
        values["trouble"] = reason_words(values["trouble"])
    return format_html(gettext(reason.template), **values)


def reason_words(reason: str) -> str:
    """Return the reason in the language of the page if the engine wrote it."""
    return _in_words(reason, TEMPLATES)


def detail_words(detail: str) -> str:
    """Return the detail of an audit entry in the language of the page, if it is a sentence."""
    return _in_words(detail, DETAILS)


def _in_words(text: str, templates: tuple[str, ...]) -> str:
    for template, pattern in _patterns(templates):
        if found := pattern.fullmatch(text):
            given = found.groupdict()
            if "reason" in given:  # For a pause, which may be the engine's own.
                given["reason"] = reason_words(given["reason"])
            if "verb" in given and given["verb"] in BULK_VERBS:
                given["verb"] = str(BULK_VERBS[given["verb"]].label)
            return gettext(template).format(**given)
    return text


@cache
def _patterns(templates: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((template, _pattern(template)) for template in templates)


def _pattern(template: str) -> re.Pattern[str]:
    parts = [
        f"(?P<{text}>{GAPS.get(text, '.+?')})" if place % 2 else re.escape(text)
        for place, text in enumerate(re.split(r"\{(\w+)\}", template))
    ]
    return re.compile("".join(parts), re.DOTALL)
