"""The sentences of conditions, with gaps, and their translation for mails and the admin."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from django.utils.translation import gettext, gettext_noop, ngettext

from taskqueue.core.sentences import LONGEST_MINUTES, Sentence

FAILED_OF_QUEUE = gettext_noop(
    "Tasks of the queue {subject} that failed within the last {within}: {count}."
)
FAILED_OF_NAME = gettext_noop(
    "Tasks named {subject} that failed within the last {within}: {count}."
)
RATE_OF_QUEUE = gettext_noop(
    "In the queue {subject}, {failed} of {total} attempts failed within the last {within}."
)
RATE_OF_NAME = gettext_noop(
    "Of {subject}, {failed} of {total} attempts failed within the last {within}."
)
LATE_FOR_NOTHING = gettext_noop(
    "The oldest task of the queue {subject} has waited {age}, though a worker has free slots."
    " Waiting tasks: {count}."
)
NOBODY = gettext_noop("No running worker takes tasks. Waiting tasks: {count}.")
OVERDUE = gettext_noop("The schedule {subject} is overdue, for {age}. {detail}")
WORKFLOWS_FAILED = gettext_noop(
    "Workflows named {subject} that failed within the last {within}: {count}."
)
WORKFLOW_SLOW = gettext_noop(
    "The workflow {subject} has run for {age}: 95 percent of those that succeeded took at most "
    "{usual}."
)
SATURATED = gettext_noop(
    "The limit {subject} ({detail}) is used up. Tasks that wait for it: {count}."
)


def said(text: str, **values: Any) -> dict[str, Any]:
    """Return the sentence of a condition: in English, and as other languages need it.

    `within` is a number of seconds.
    """
    times = {"within": values.pop("within")} if "within" in values else {}
    sentence = Sentence(text, {name: str(value) for name, value in values.items()}, times)
    return {"summary": sentence.english, "words": sentence.words}


def translated(words: Mapping[str, Any], english: str) -> str:
    """Return a stored sentence in the language of the reader; without words, the English one."""
    sentence = Sentence.of(words)
    return english if sentence is None else sentence.translated(gettext, _time_words)


def translated_remedy(words: Mapping[str, Any], english: str) -> str:
    """Return the remedy of a stored sentence in the language of the reader, as far as it is known.

    The subject is quoted for a shell.
    """
    if not words.get("remedy"):
        return english
    values = words.get("values", {})
    quoted = {"subject": quote(values.get("subject", ""))}
    return gettext(words["remedy"]).format(**values | quoted)


def _time_words(seconds: int) -> str:
    if seconds % 3600 == 0 and seconds > LONGEST_MINUTES * 60:
        count = seconds // 3600
        return ngettext("%(count)s hour", "%(count)s hours", count) % {"count": count}
    if seconds % 60 == 0:
        count = seconds // 60
        return ngettext("%(count)s minute", "%(count)s minutes", count) % {"count": count}
    return ngettext("%(count)s second", "%(count)s seconds", seconds) % {"count": seconds}
