"""The options that a definition declares: rows of pages, and the meaning of empty fields."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from taskqueue.admin.schedules.fields import SpanField
from taskqueue.admin.tasks.option_values import shown_option
from taskqueue.conf import get_settings
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.option import Option, Use
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import OPTIONS
from taskqueue.display import compact
from taskqueue.exceptions import InvalidTask
from taskqueue.monitoring.durations import short_duration

AnyDefinition = BaseDefinition[Any, Any]
# Options that are shown even with their default values.
ALWAYS = ("queue_name", "priority", "max_attempts")
NOTHING: tuple[object, ...] = (None, "", (), {}, frozenset())


@dataclass(frozen=True, kw_only=True)
class DeclaredOption:
    """An option of a definition, as a page shows it."""

    name: str
    label: Any
    help: Any
    text: str


def declared_options(definition: AnyDefinition) -> list[DeclaredOption]:
    """Return the options that the code has set, and some others in any case."""
    return [
        _row(option, definition)
        for name, option in OPTIONS.items()
        if option.label and (name in ALWAYS or getattr(definition.options, name) != option.default)
    ]


def fixed_options(definition: AnyDefinition | None) -> list[DeclaredOption]:
    """Return the options that no call, schedule or change can replace."""
    if definition is None:
        return []
    return [each for each in declared_options(definition) if OPTIONS[each.name].use == Use.TASK]


def show_declared(fields: Mapping[str, forms.Field], definition: AnyDefinition) -> None:
    """Show in each option's field what applies if it is left empty."""
    for name, option in OPTIONS.items():
        field, value = fields.get(name), _value(option, definition)
        if field is None or value in NOTHING:
            continue
        text, widget = _text(option, value), field.widget
        if isinstance(field, SpanField):
            widget.widgets[0].attrs["placeholder"] = text
        elif isinstance(field, forms.ChoiceField):
            declared = _("as declared: %(value)s") % {"value": text}
            choices: Any = field.choices
            field.choices = [(key, declared if key == "" else word) for key, word in choices]
        elif not isinstance(widget, forms.Textarea):
            widget.attrs["placeholder"] = text


# The docstrings of this package's tasks, for the translators.
OWN_DOCS = (
    gettext_noop("Run a management command, such as `clearsessions`; its output is the result."),
    gettext_noop(
        "Send a request; status and text of the answer are the result.\n\n"
        "`body` is text, or a value that is sent as JSON. An answer of 5xx, or none, is a failure "
        "that is\nretried; one of 3xx or 4xx is final, but for 408, 425 and 429."
    ),
    gettext_noop(
        "Run a program with these arguments, without a shell; the end of its output is the result."
        "\n\nIts lines are log lines of the attempt. Another exit code than 0 is a failure. When "
        "the attempt\nis stopped or its time is over, the program is killed with all that it has "
        "started."
    ),
    gettext_noop("Call the URL of a heartbeat."),
    gettext_noop("Send mail about the incidents of a rule, or a test message if there are none."),
    gettext_noop(
        "Send a delivery to its endpoint; the response decides whether and when it is sent again."
    ),
    gettext_noop(
        "Mail the creator of a disabled endpoint, or the admins if the creator has no address."
    ),
)


def documented(definition: AnyDefinition) -> str:
    """Return the docstring of the task's function; of our own tasks in the reader's language."""
    text = inspect.cleandoc(definition.__doc__ or "")
    return _(text) if text in OWN_DOCS else text


def _row(option: Option, definition: AnyDefinition) -> DeclaredOption:
    return DeclaredOption(
        name=option.name,
        label=gettext_lazy(option.label),
        help=gettext_lazy(option.help),
        text=_text(option, _value(option, definition)),
    )


def _value(option: Option, definition: AnyDefinition) -> Any:
    """Return what applies to its tasks: the definition's value, or the setting."""
    value = getattr(definition.options, option.name)
    return option.column_value(value, get_settings())


def _text(option: Option, value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, timedelta):
        return short_duration(value.total_seconds())
    plain = sorted(value) if isinstance(value, frozenset) else option_to_json(value)
    try:
        shown = shown_option(option, plain)
    except (InvalidTask, TypeError, ValueError):
        shown = plain
    if isinstance(shown, list):
        return ", ".join(each if isinstance(each, str) else compact(each) for each in shown)
    return shown if isinstance(shown, str) else compact(shown)
