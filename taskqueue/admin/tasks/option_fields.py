"""The form fields that ask for options of tasks, made from their declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.refusals import refused
from taskqueue.admin.schedules.fields import JsonField, SpanField, SuggestingInput
from taskqueue.admin.schedules.rules import moment_in
from taskqueue.core.priorities import PRIORITY_NAMES
from taskqueue.declarations.key_options import KeyOptions
from taskqueue.declarations.limit_kinds import CostKind, InstanceKind, LimitsKind, TagsKind
from taskqueue.declarations.limit_options import LimitOptions
from taskqueue.declarations.option import Option, Use
from taskqueue.declarations.option_kinds import (
    Choice,
    ExceptionClasses,
    JsonObject,
    Kind,
    Policy,
    Switch,
    Whole,
    WorkerNames,
)
from taskqueue.declarations.options import options_for
from taskqueue.declarations.per import Per
from taskqueue.declarations.priority_kind import PriorityKind
from taskqueue.declarations.run_options import RunOptions
from taskqueue.declarations.time_kinds import HoldTime, Seconds, When
from taskqueue.exceptions import InvalidTask

WIDE = {"class": "vTextField"}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
SPAN = re.compile(
    r"(?:in\s+)?(\d{1,9}(?:\.\d{1,6})?)\s*"
    r"(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)",
    re.IGNORECASE,
)


class WhenField(forms.CharField):
    """A time, or how long until it: such as `in 5 minutes`, `2h`, `2026-12-01 09:00`."""

    def __init__(self, **details: Any) -> None:
        details.setdefault(
            "help_text",
            gettext_lazy("Such as 2026-12-01 09:00 or in 5 minutes."),
        )
        widget = SuggestingInput(WIDE, suggestions=("in 5 minutes", "in 1 hour", "in 1 day"))
        super().__init__(max_length=100, widget=widget, **details)

    def clean(self, value: Any) -> datetime | timedelta | None:
        """Return an aware datetime or a duration; None for an empty field."""
        text = super().clean(value)
        if not text:
            return None
        match = SPAN.fullmatch(text)
        if match is not None:
            return _span(float(match[1]) * UNITS[match[2][0].lower()])
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValidationError(
                _("Enter a time such as 2026-12-01 09:00, or a delay such as in 5 minutes.")
            ) from None
        return _aware(moment)


class ListField(forms.CharField):
    """Texts that are separated by commas."""

    def clean(self, value: Any) -> list[str]:
        """Return the texts; none for an empty field."""
        text = super().clean(value)
        return [part.strip() for part in text.split(",") if part.strip()]


class OptionField(forms.CharField):
    """An option that is written as text, such as `exponential(base=2, cap=600)`."""

    def __init__(self, option: Option, **details: Any) -> None:
        self.option = option
        super().__init__(**details)

    def clean(self, value: Any) -> Any:
        """Return the value as `.using()` takes it; None for an empty field."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return self.option.kind.parse(self.option.name, text)
        except InvalidTask as error:
            raise ValidationError(refused(error)) from None


class PriorityField(OptionField):
    """A priority, as a number or by its name, such as `high`."""

    def __init__(self, option: Option, **details: Any) -> None:
        names = list(PRIORITY_NAMES)
        told = gettext_lazy("{help} A name works too: {names}.")
        details["help_text"] = format_lazy(
            told, help=details.get("help_text", ""), names=", ".join(names)
        )
        widget = SuggestingInput(suggestions=names)
        super().__init__(option, max_length=20, widget=widget, **details)

    def clean(self, value: Any) -> int | None:
        """Return the number; None for an empty field."""
        found = super().clean(value)
        try:
            return None if found is None else self.option.check(found)
        except InvalidTask as error:
            raise ValidationError(refused(error)) from None


def _span(seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValidationError(_("This duration is too long.")) from None


def _aware(moment: datetime) -> datetime:
    """Without an offset it is in the current time zone. Raises ValidationError."""
    try:
        return moment_in(timezone.get_current_timezone_name(), "moment", moment)
    except ValidationError as error:
        raise ValidationError(error.messages) from None
    except (OverflowError, LookupError, ValueError):
        return timezone.make_aware(moment) if moment.tzinfo is None else moment


# The options that come first in forms that change a task.
FIRST = ("queue_name", "priority", "max_attempts", "timeout")


def changeable_options(*uses: Use) -> dict[str, Option]:
    """Return the options of a task that can be changed, in the order of a form."""
    found = {name: option for use in uses for name, option in labelled_options(use).items()}
    first = {name: found[name] for name in FIRST}
    edited = labelled_options(Use.EDIT)
    return first | {name: edited[name] for name in edited if name in found} | found


# By the class that declares them.
GROUPS = (
    (gettext_lazy("When, where and how often"), RunOptions),
    (gettext_lazy("Unique keys and bursts"), KeyOptions),
    (gettext_lazy("Limits"), LimitOptions),
)


def grouped(names: Iterable[str]) -> list[tuple[Any, list[str]]]:
    """Return the options grouped by subject, each group with its title."""
    given = list(names)
    groups = [
        (title, [name for name in given if name in by.__annotations__]) for title, by in GROUPS
    ]
    return [(title, own) for title, own in groups if own]


def labelled_options(use: Use) -> dict[str, Option]:
    """Return the options that have their own field there."""
    return {name: option for name, option in options_for(use).items() if option.label}


def option_fields(options: Mapping[str, Option], *, required: bool) -> dict[str, forms.Field]:
    """Return the field of each option. A length of time may always be empty."""
    return {name: _field(option, required=required) for name, option in options.items()}


def _field(option: Option, *, required: bool) -> forms.Field:
    kind = option.kind
    label = gettext_lazy(option.label)
    # An option that may be None may be left empty.
    required = required and (option.default is not None or bool(option.setting))
    if isinstance(kind, When):
        return WhenField(label=label, required=required)
    help_text = gettext_lazy(option.help)
    if isinstance(kind, Seconds):
        return SpanField(label=label, help_text=help_text)
    if isinstance(kind, PriorityKind):
        return PriorityField(option, label=label, required=required, help_text=help_text)
    if isinstance(kind, Whole):
        return forms.IntegerField(
            label=label, required=required, help_text=help_text,
            min_value=kind.lowest, max_value=kind.highest,
        )  # fmt: skip
    shown: dict[str, Any] = {"label": label, "help_text": help_text}
    if isinstance(kind, JsonObject):
        return JsonField(dict, **shown)
    if isinstance(kind, Choice):
        words = [("", "---------"), *((word, word) for word in kind.words if word)]
        return forms.ChoiceField(choices=words, required=required, **shown)
    if isinstance(kind, Switch):
        choices = [("", "---------"), (True, gettext_lazy("yes")), (False, gettext_lazy("no"))]
        return forms.TypedChoiceField(
            choices=choices, coerce=lambda text: text == "True", empty_value=None,
            required=required, **shown,
        )  # fmt: skip
    wide = forms.TextInput(WIDE)
    if isinstance(kind, WorkerNames):
        return ListField(required=required, widget=wide, **shown)
    if isinstance(kind, WRITTEN):
        example = EXAMPLES.get(option.name) or getattr(kind, "example", "")
        if example:
            such = gettext_lazy("such as {example}")
            wide.attrs["placeholder"] = format_lazy(such, example=example)
        return OptionField(option, required=required, widget=wide, **shown)
    return forms.CharField(required=required, strip=False, widget=wide, **shown)


# Kinds whose typed text must still be converted to a value.
WRITTEN: tuple[type[Kind], ...] = (
    Policy, ExceptionClasses, HoldTime, Per, LimitsKind, InstanceKind, TagsKind, CostKind,
)  # fmt: skip
EXAMPLES = {
    "cost": "3",
    "requires": "gpu, eu",
    "backoff": "exponential(base=2, cap=600)",
    "retry_for": "ConnectionError, TimeoutError",
    "snooze_on": "shop.errors.Busy",
    "unique_for": "finished, started, 10m",
    "unique_per": "day, 2h",
}


def given_options(given: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the options that were filled in."""
    return {name: given[name] for name in names if given.get(name) not in (None, "", [], {})}
