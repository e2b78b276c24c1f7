"""The form field for a parameter: its name, its kind, and its value when left empty."""

from __future__ import annotations

import inspect
import json
from enum import Enum
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.schedules.fields import JsonField
from taskqueue.declarations.parameters import EMPTY, VARIABLE, Parameter
from taskqueue.declarations.payload import LARGEST_INTEGER

# A prefix for the names of the fields, because options have fields too.
PREFIX, NULL_PREFIX = "arg_", "null_"
LONGEST_DEFAULT = 80
WIDE = {"class": "vTextField"}
STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class ValueField(JsonField):
    """Any JSON value, or one of a kind; None if nothing was given."""

    def __init__(self, kind: type, *, required: bool, is_nullable: bool, **options: Any) -> None:
        super().__init__(dict if kind is object else kind, **options)
        self.kind, self.initial, self.required = kind, None, required
        self.is_nullable = is_nullable

    def clean(self, value: Any) -> Any:
        """Return the value. Raises ValidationError."""
        if self.is_nullable and (value or "").strip() == "null":
            return None
        if (value or "").strip():
            return super().clean(value)
        if self.required:
            raise ValidationError(self.error_messages["required"], code="required")
        return None


def field_of(parameter: Parameter) -> forms.Field:
    """Return the field for a parameter; for a sensitive one it never shows its value."""
    field = _plain_field(
        parameter,
        label=STARS.get(parameter.place, "") + parameter.name,
        help_text=_help(parameter),
        required=parameter.is_required and not parameter.is_nullable,
    )
    if parameter.is_sensitive:
        field.widget = forms.PasswordInput({"autocomplete": "new-password", **WIDE})
        field.initial = None
        if isinstance(field, JsonField):
            field.is_secret = True
        field.error_messages["invalid_choice"] = gettext_lazy("This is not one of the choices.")
    elif parameter.default is not EMPTY:
        field.initial = _initial(parameter)
    return field


def _plain_field(parameter: Parameter, **named: Any) -> forms.Field:
    kind = parameter.kind
    if _is_box(parameter):
        return forms.BooleanField(**{**named, "required": False})
    if kind is str:
        named["required"] = named["required"] and parameter.is_sensitive
        return forms.CharField(strip=False, empty_value="", widget=forms.TextInput(WIDE), **named)
    if kind is int:
        return forms.IntegerField(
            min_value=-LARGEST_INTEGER, max_value=LARGEST_INTEGER - 1, **named
        )
    if kind is float:
        return forms.FloatField(**named)
    if isinstance(kind, tuple):
        choices = kind if parameter.is_required else (("", "---------"), *kind)
        if parameter.is_nullable:
            choices = (*choices, ("null", "null"))
        return forms.TypedChoiceField(choices=choices, coerce=json.loads, empty_value=None, **named)
    json_kind = dict if kind is dict else list if kind is list else object
    return ValueField(json_kind, is_nullable=parameter.is_nullable, **named)


def _is_box(parameter: Parameter) -> bool:
    """Return whether it is a checkbox, which cannot be left empty."""
    return parameter.kind is bool and not (parameter.is_nullable or parameter.is_sensitive)


def _initial(parameter: Parameter) -> Any:
    default = parameter.default
    if default is None or parameter.kind in (bool, int, float, str):
        return default
    try:
        return json.dumps(default.value if isinstance(default, Enum) else default)
    except (TypeError, ValueError):
        return None


def _help(parameter: Parameter) -> str:
    """Return its annotation, and what applies if it is left out."""
    said = [parameter.annotation]
    if parameter.place in VARIABLE or parameter.kind in (dict, list, object):
        said.append(_EXAMPLES.get(parameter.kind, _EXAMPLES[object]))
    if parameter.default is not EMPTY and not parameter.is_sensitive:
        said.append(_("Left out: %(default)s.") % {"default": _shown(parameter.default)})
    elif parameter.default is not EMPTY:
        said.append(_("May be left out."))
    return " · ".join(str(each) for each in said if each)


_EXAMPLES: dict[object, Any] = {
    list: gettext_lazy('JSON, such as ["a", 1].'),
    dict: gettext_lazy('JSON, such as {"a": 1}.'),
    object: gettext_lazy('JSON, such as 42, "text", true, null or [1, 2].'),
}


def _shown(default: object) -> str:
    try:
        return Truncator(repr(default)).chars(LONGEST_DEFAULT)
    except Exception:  # The form is shown even if a default's repr() fails.
        return type(default).__name__


def shown_value(parameter: Parameter, value: Any) -> Any:
    """Return an argument's value in the form for the parameter's field."""
    if parameter.kind in (bool, int, float, str) and isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value, ensure_ascii=False)


def field_name(parameter: Parameter) -> str:
    """Return the name of its field."""
    return PREFIX + parameter.name


def null_name(parameter: Parameter) -> str:
    """Return the name of the field that gives None."""
    return NULL_PREFIX + parameter.name


def needs_null_box(parameter: Parameter) -> bool:
    """Return whether None is possible, but its own field cannot give it, not even if empty."""
    if not parameter.is_nullable or parameter.default is None or parameter.place in VARIABLE:
        return False
    kind = parameter.kind
    return kind is str or (kind in (int, float) and parameter.default is not EMPTY)


def is_left_out(parameter: Parameter, value: Any, raw: Any) -> bool:
    """Return whether the field has the default value, which applies if the argument is left out."""
    if parameter.place in VARIABLE:
        return not value
    if parameter.default is EMPTY:
        return False
    is_empty = raw in (None, "") and not _is_box(parameter)
    if is_empty and (parameter.kind is not str or parameter.is_sensitive):
        return True
    return bool(value == _shown_default(parameter))


def _shown_default(parameter: Parameter) -> Any:
    """Return the initial value of the field."""
    if isinstance(parameter.default, Enum):
        return parameter.default.value
    return "" if parameter.default is None and parameter.kind is str else parameter.default
