"""The form fields that ask for options of tasks, made from their declarations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.schedules.fields import SpanField
from taskqueue.admin.schedules.rules import moment_in
from taskqueue.declarations.option import Option, Use
from taskqueue.declarations.option_kinds import Seconds, When, Whole
from taskqueue.declarations.options import options_for

WIDE = {"class": "vTextField"}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
SPAN = re.compile(
    r"(?:in\s+)?(\d{1,9}(?:\.\d{1,6})?)\s*"
    r"(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)",
    re.IGNORECASE,
)


class WhenField(forms.CharField):
    """A moment, or how long until it: such as `in 5 minutes`, `2h`, `2026-12-01 09:00`."""

    def __init__(self, **details: Any) -> None:
        suggestions = {"list": "taskqueue-times", "autocomplete": "off", **WIDE}
        details.setdefault(
            "help_text",
            gettext_lazy("Such as 2026-12-01 09:00 or in 5 minutes."),
        )
        super().__init__(max_length=100, widget=forms.TextInput(suggestions), **details)

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


def labelled_options(use: Use) -> dict[str, Option]:
    """Return the options that have a field of their own there."""
    return {name: option for name, option in options_for(use).items() if option.label}


def option_fields(options: Mapping[str, Option], *, required: bool) -> dict[str, forms.Field]:
    """Return the field of each option. A length of time may always be empty."""
    return {name: _field(option, required=required) for name, option in options.items()}


def _field(option: Option, *, required: bool) -> forms.Field:
    kind = option.kind
    label = gettext_lazy(option.label)
    if isinstance(kind, When):
        return WhenField(label=label, required=required)
    help_text = gettext_lazy(option.help)
    if isinstance(kind, Seconds):
        return SpanField(label=label, help_text=help_text)
    if isinstance(kind, Whole):
        return forms.IntegerField(
            label=label, required=required, help_text=help_text,
            min_value=kind.lowest, max_value=kind.highest,
        )  # fmt: skip
    return forms.CharField(
        label=label, required=required, strip=False, help_text=help_text,
        widget=forms.TextInput(WIDE),
    )  # fmt: skip
