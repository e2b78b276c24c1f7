"""Translate refusals to the reader's language."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext

from taskqueue.admin.reason_words import reason_words
from taskqueue.core.refusals import Refusal, why
from taskqueue.display import status_word


def refused(error: BaseException) -> str:
    """Return the text of an error; in English where nobody knows its translation."""
    return translated(why(error))


def translated(text: object) -> str:
    """Return a text in the reader's language, with the texts that fill its gaps."""
    if not isinstance(text, Refusal):
        return str(text)
    values = {name: _shown(name, value) for name, value in text.values.items()}
    return gettext(text.template).format(**values)


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, Refusal):
        return translated(value)
    if name == "status":
        return status_word(value)
    return reason_words(value) if name == "reason" and isinstance(value, str) else value
