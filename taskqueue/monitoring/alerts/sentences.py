"""The sentences and remedies of conditions that only alerts report; translations of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop

from taskqueue.monitoring.notice_texts import TEXTS, Text
from taskqueue.monitoring.sentences import Sentence, remedy_of

FAILED_OF_QUEUE = Text(
    gettext_noop("Tasks of the queue {subject} that failed within the last {within}: {count}."),
    gettext_noop('Fix the cause: manage.py taskqueue list "queue:{subject} status:failed".'),
)
FAILED_OF_NAME = Text(
    gettext_noop("Tasks named {subject} that failed within the last {within}: {count}."),
    gettext_noop('Fix the cause: manage.py taskqueue list "name:{subject} status:failed".'),
)
RATE_OF_QUEUE = Text(
    gettext_noop(
        "In the queue {subject}, {failed} of {total} attempts failed within the last {within}."
    ),
    TEXTS["failing"].remedy,
)
RATE_OF_NAME = Text(
    gettext_noop("Of {subject}, {failed} of {total} attempts failed within the last {within}."),
    gettext_noop(
        'Fix the cause: manage.py taskqueue list "name:{subject} status:failed,retrying".'
    ),
)
LATE_FOR_NOTHING = Text(
    gettext_noop(
        "The oldest task of the queue {subject} has waited {age}, though a worker has free slots."
        " Waiting tasks: {count}."
    ),
    TEXTS["stalled"].remedy,
)
NOBODY = Text(
    gettext_noop("No running worker takes tasks. Waiting tasks: {count}."),
    gettext_noop("Start one: manage.py runworker. Or manage.py taskqueue workers resume."),
)
OVERDUE = Text(
    gettext_noop("The schedule {subject} is overdue, for {age}. {detail}"),
    gettext_noop(
        "manage.py taskqueue schedules show {subject}; then read the workers' logs: something"
        " keeps them from their duties."
    ),
)
WORKFLOWS_FAILED = Text(
    gettext_noop("Workflows named {subject} that failed within the last {within}: {count}."),
    gettext_noop(
        "manage.py taskqueue workflows show {example}; fix the cause, then workflows retry"
        " {example}."
    ),
)
WORKFLOW_SLOW = Text(
    gettext_noop(
        "The workflow {subject} has run for {age}: 95 percent of those that succeeded took at most "
        "{usual}."
    ),
    "manage.py taskqueue workflows show {example}",
)
SATURATED = Text(
    gettext_noop("The limit {subject} ({detail}) is used up. Tasks that wait for it: {count}."),
    gettext_noop("manage.py taskqueue limits show {subject}; limits set {subject} raises it."),
)


def said(
    text: Text,
    *,
    times: Mapping[str, int] | None = None,
    ages: Mapping[str, float] | None = None,
    **values: object,
) -> dict[str, Any]:
    """Return the sentence and the remedy of a condition, and the data to translate both.

    `times` and `ages` are in seconds.
    """
    gaps = {name: str(value) for name, value in values.items()}
    sentence = Sentence(text.sentence, gaps, times or {}, ages or {})
    words = sentence.words | {"remedy": text.remedy}
    return {"summary": sentence.english, "words": words, "remedy": remedy_of(words).english}


def translated(words: Mapping[str, Any], english: str) -> str:
    """Return a stored sentence in the reader's language; without its data, the English one."""
    sentence = Sentence.of(words)
    return english if sentence is None else sentence.translated


def translated_remedy(words: Mapping[str, Any], english: str) -> str:
    """Return the remedy of a stored sentence in the reader's language."""
    return remedy_of(words).translated if words.get("remedy") else english
