"""Form fields for lengths of time, moments and JSON, and a text input with suggestions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from taskqueue.admin.refusals import refused
from taskqueue.declarations.payload import encode
from taskqueue.exceptions import InvalidArguments

MICROSECOND = timedelta(microseconds=1)
UNITS = {
    "1": gettext_lazy("seconds"),
    "60": gettext_lazy("minutes"),
    "3600": gettext_lazy("hours"),
    "86400": gettext_lazy("days"),
}
MOST_JSON = 1_000_000


class SuggestingInput(forms.TextInput):
    """A text input with suggestions; any other text can be typed too."""

    template_name = "admin/taskqueue/includes/suggesting_input.html"

    def __init__(self, attrs: Any = None, *, suggestions: Sequence[str]) -> None:
        super().__init__({"autocomplete": "off", **(attrs or {})})
        self.suggestions = suggestions

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """Return the context of the template, with the id of the list of suggestions."""
        context = super().get_context(name, value, attrs)
        shown = context["widget"]["attrs"]
        shown["list"] = f"{shown.get('id', name)}_suggestions"
        context["widget"]["suggestions"] = self.suggestions
        return context


class SpanWidget(forms.MultiWidget):
    """A number and a unit."""

    def __init__(self, attrs: Any = None) -> None:
        number = forms.NumberInput(
            {"step": "any", "class": "taskqueue-number", "aria-label": gettext_lazy("Number")}
        )
        unit = forms.Select({"aria-label": gettext_lazy("Unit")}, choices=list(UNITS.items()))
        super().__init__((number, unit), attrs)

    def decompress(self, value: Any) -> list[Any]:
        """Return the number in the largest unit in which it is whole."""
        if not isinstance(value, timedelta):
            return [None, "1"]
        count = value // MICROSECOND
        for unit in reversed(UNITS):
            whole, rest = divmod(count, int(unit) * 1_000_000)
            if count and not rest:
                return [whole, unit]
        return [Decimal(count) / 1_000_000, "1"]


class SpanField(forms.MultiValueField):
    """A length of time, exact to the microsecond."""

    widget = SpanWidget

    def __init__(self, **options: Any) -> None:
        number = forms.DecimalField(max_digits=18, decimal_places=6, required=False)
        unit = forms.ChoiceField(choices=list(UNITS.items()), required=False)
        super().__init__((number, unit), require_all_fields=False, required=False, **options)
        if self.label:  # For screen readers: the unit has its own label.
            self.widget.widgets[0].attrs["aria-label"] = self.label

    def compress(self, data_list: list[Any]) -> timedelta | None:
        """Return the length, or None if empty. Raises ValidationError if it is too long."""
        if not data_list or data_list[0] is None:
            return None
        number, unit = data_list
        try:
            return timedelta(microseconds=int(number * int(unit or 1) * 1_000_000))
        except OverflowError:
            raise ValidationError(_("This duration is too long.")) from None


class MomentField(forms.CharField):
    """A moment in ISO 8601; without an offset it is in the form's time zone."""

    def clean(self, value: Any) -> Any:
        """Return a datetime, aware or naive; None if the field is empty."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise ValidationError(
                _("Enter a time such as 2026-12-01 09:00, or 2026-12-01 09:00+01:00.")
            ) from None


class JsonField(forms.CharField):
    """A JSON value of one kind, that any database can store."""

    # Whether errors may not show the keys of what was given.
    is_secret = False

    def __init__(self, kind: type, *, example: str = "", **options: Any) -> None:
        self.kind = kind
        self.example = example or ('["a", 1]' if kind is list else '{"a": 1}')
        rows = forms.Textarea({"rows": 3, "class": "vLargeTextField", "spellcheck": "false"})
        super().__init__(required=False, widget=rows, initial=json.dumps(kind()), **options)

    def clean(self, value: Any) -> Any:
        """Return the value; an empty one if the field is empty."""
        text = super().clean(value)
        if not text:
            return self.kind()
        try:
            parsed = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once_each)
        except RecursionError:
            raise ValidationError(_("This JSON is nested too deeply.")) from None
        except ValueError as error:
            if self.kind in (list, dict) and not text.startswith(("[", "{")):
                told = _("Enter JSON, such as %(example)s.") % {"example": self.example}
                raise ValidationError(told) from None
            raise ValidationError(
                _("This is not valid JSON: %(error)s") % {"error": _why(error)}
            ) from None
        if not isinstance(parsed, self.kind):
            raise ValidationError(
                _("Enter a value such as %(example)s.") % {"example": self.example}
            )
        try:
            return json.loads(encode(parsed, limit=MOST_JSON, what="value", is_secret=self._hides))
        except InvalidArguments as error:
            raise ValidationError(refused(error)) from None

    def _hides(self, _place: object) -> bool:
        return self.is_secret


class NotJSON(ValueError):
    """A value that Python's parser accepts and JSON does not have; its text is translated."""


# What Python's parser says most often, for the translators.
PARSER_ERRORS = (
    gettext_noop("Expecting value"),
    gettext_noop("Expecting ',' delimiter"),
    gettext_noop("Expecting ':' delimiter"),
    gettext_noop("Expecting property name enclosed in double quotes"),
    gettext_noop("Extra data"),
    gettext_noop("Unterminated string starting at"),
    gettext_noop("Invalid control character at"),
)


def _why(error: ValueError) -> str:
    """Return why a text is not JSON, and where."""
    if isinstance(error, json.JSONDecodeError):
        place = {"reason": _(error.msg), "line": error.lineno, "column": error.colno}
        return _("%(reason)s: line %(line)s, column %(column)s.") % place
    if isinstance(error, NotJSON):
        return str(error)
    return _("it has a number with too many digits.")


def _refuse(constant: str) -> NoReturn:
    raise NotJSON(_("%(constant)s is not a JSON value.") % {"constant": constant})


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, and refuse duplicate names, which would silently lose a value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotJSON(_("an object has the same name twice."))
    return found


def as_text(value: Any) -> str:
    """Return a value as the text that `JsonField` reads."""
    return json.dumps(value, ensure_ascii=False, indent=2) if value else json.dumps(value)
