"""Translate refusals to the reader's language."""

from __future__ import annotations

from typing import Any

from django.forms import BaseForm
from django.utils.translation import gettext

from taskqueue.core.refusals import Refusal, why
from taskqueue.display import status_word
from taskqueue.exceptions import TaskQueueError
from taskqueue.reason_words import reason_words


def refused(error: BaseException) -> str:
    """Return the text of an error; in English if there is no translation."""
    return translated(why(error))


def add_refusal(form: BaseForm, error: TaskQueueError) -> None:
    """Tell an error at the field that it is about; above the form where there is none such."""
    field = next(iter(error.path), None)
    form.add_error(field if field in form.fields else None, refused(error))


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
