"""Translate the reasons that the engine stores; reasons that people wrote stay as they are.

The engine writes them in English: their later readers may speak another language.
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
from taskqueue.monitoring.why.reasons import Reason

# The first one that matches counts.
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
    # Of steps of workflows.
    _("A step that it depends on did not succeed."),
    _("A step failed."),
    _("Its condition was false."),
    _("Its step was not released."),
    _("Resolved by hand."),
    _("The workflow was stopped."),
)
# Patterns of the gaps; other gaps match any text.
GAPS = {"number": r"\d+", "seconds": r"\S+", "time": r"\S+", "task": r"\S+"}


def sentence_of(reason: Reason, show: Callable[[Any], Any]) -> SafeString:
    """Return why a task waits as a sentence; each value it names is formatted by `show`."""
    values = reason.values(show)
    if "status" in values:
        values["status"] = status_word(values["status"])
    return format_html(gettext(reason.template), **values)


def reason_words(reason: str) -> str:
    """Return the reason in the language of the page if the engine wrote it."""
    for template, pattern in _patterns():
        if found := pattern.fullmatch(reason):
            given = found.groupdict()
            if "reason" in given:  # Of a pause, which may be the engine's own.
                given["reason"] = reason_words(given["reason"])
            return gettext(template).format(**given)
    return reason


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((template, _pattern(template)) for template in TEMPLATES)


def _pattern(template: str) -> re.Pattern[str]:
    parts = [
        f"(?P<{text}>{GAPS.get(text, '.+?')})" if place % 2 else re.escape(text)
        for place, text in enumerate(re.split(r"\{(\w+)\}", template))
    ]
    return re.compile("".join(parts), re.DOTALL)
