"""A field for each parameter of a definition, and a call from what the fields hold."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.schedules.fields import JsonField
from taskqueue.definitions import Definition
from taskqueue.payload import LARGEST_INTEGER

EMPTY: Any = inspect.Parameter.empty
PREFIX = "arg_"
"""Before the names of the fields: options have fields too."""
LONGEST_DEFAULT = 80
WIDE = {"class": "vTextField"}
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class ValueField(JsonField):
    """Any JSON value, or one of a kind; None where nothing was given."""

    def __init__(self, kind: type, *, required: bool, **options: Any) -> None:
        super().__init__(dict if kind is object else kind, **options)
        self.kind, self.initial, self.required = kind, None, required

    def clean(self, value: Any) -> Any:
        """The value. Raises ValidationError."""
        if (value or "").strip():
            return super().clean(value)
        if self.required:
            raise ValidationError(self.error_messages["required"], code="required")
        return None


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a body, as the form asks for it."""

    name: str
    place: Any
    """Which way a call fills it, as `inspect` says."""
    default: Any
    kind: object
    """The plain type that its field gives, or the choices there are."""
    is_nullable: bool
    is_sensitive: bool
    annotation: str

    @property
    def field_name(self) -> str:
        """Of its field."""
        return PREFIX + self.name

    @property
    def is_required(self) -> bool:
        """Whether a call without it is none."""
        return self.default is EMPTY and self.place not in VARIABLE

    def is_left_out(self, value: Any, raw: Any, *, is_by_place: bool) -> bool:
        """Whether what the field holds is the default, which then applies by itself.

        Where arguments go by their place, those that stand before others are all given.
        """
        if self.place in VARIABLE:
            return not value
        if self.default is EMPTY:
            return False
        is_empty = raw in (None, "") and self.kind is not bool
        if is_empty and (self.kind is not str or self.is_sensitive):
            return True
        return not is_by_place and bool(value == self._shown_default)

    @property
    def _shown_default(self) -> Any:
        """What the field holds at first."""
        if isinstance(self.default, Enum):
            return self.default.value
        return "" if self.default is None and self.kind is str else self.default


def parameters(definition: Definition[Any, Any]) -> list[Parameter]:
    """Those that an enqueue fills, and the sensitive names that only `**kwargs` takes."""
    found = inspect.signature(definition.body).parameters
    hints = _hints(definition.body)
    sensitive = definition.options.sensitive
    known = definition.signature.names
    listed = [_parameter(found[name], hints.get(name, EMPTY), name in sensitive) for name in known]
    extra = [
        Parameter(
            name=name, place=inspect.Parameter.KEYWORD_ONLY, default=None, kind=str,
            is_nullable=True, is_sensitive=True, annotation="",
        )
        for name in sorted(sensitive - set(known))
    ]  # fmt: skip
    return listed + extra


def _hints(body: Any) -> dict[str, Any]:
    try:
        return get_type_hints(body)
    except Exception:  # Annotations may name what is only there for a type checker.
        return {}


def _parameter(found: inspect.Parameter, hint: Any, is_sensitive: bool) -> Parameter:
    kind, is_nullable = _kind(hint)
    if found.kind is inspect.Parameter.VAR_POSITIONAL:
        kind = list
    elif found.kind is inspect.Parameter.VAR_KEYWORD:
        kind = dict
    elif hint is EMPTY and type(found.default) in (bool, int, float, str):
        kind = type(found.default)
    text = "" if found.annotation is EMPTY else _annotation(found.annotation)
    return Parameter(
        name=found.name, place=found.kind, default=found.default, kind=kind,
        is_nullable=is_nullable, is_sensitive=is_sensitive, annotation=text,
    )  # fmt: skip


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _kind(hint: Any) -> tuple[object, bool]:
    """The plain type behind an annotation or its choices, and whether None is one too."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        rest = [each for each in get_args(hint) if each is not type(None)]
        is_nullable = len(rest) < len(get_args(hint))
        return (_kind(rest[0])[0] if len(rest) == 1 else object), is_nullable
    if hint in (bool, int, float, str):
        return hint, False
    if origin is Literal:
        return _choices({str(each): each for each in get_args(hint)}), False
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choices({member.name: member.value for member in hint}), False
    plain = origin if isinstance(origin, type) else hint
    if isinstance(plain, type) and issubclass(plain, Mapping):
        return dict, False
    if isinstance(plain, type) and issubclass(plain, Sequence) and plain is not bytes:
        return list, False
    return object, False


def _choices(values: Mapping[str, Any]) -> object:
    """The values by their JSON text; any value at all where one of them has none."""
    try:
        return tuple((json.dumps(value), label) for label, value in values.items())
    except (TypeError, ValueError):
        return object


def field_of(parameter: Parameter) -> forms.Field:
    """The field that asks for it; a sensitive one never shows what it was given."""
    named: dict[str, Any] = {
        "label": STARS.get(parameter.place, "") + parameter.name,
        "required": False,
        "help_text": _help(parameter),
    }  # fmt: skip
    is_needed = parameter.is_required and not parameter.is_nullable
    field = _plain_field(parameter, named, is_needed)
    if parameter.is_sensitive:
        field.widget = forms.PasswordInput({"autocomplete": "new-password", **WIDE})
        field.initial = None
        field.error_messages["invalid_choice"] = gettext_lazy("This is not one of the choices.")
    elif parameter.default is not EMPTY:
        field.initial = _initial(parameter)
    return field


def _plain_field(parameter: Parameter, named: dict[str, Any], is_needed: bool) -> forms.Field:
    kind = parameter.kind
    if kind is bool and not (parameter.is_nullable or parameter.is_sensitive):
        return forms.BooleanField(**named)
    if kind is str:
        named["required"] = is_needed and parameter.is_sensitive
        return forms.CharField(strip=False, empty_value="", widget=forms.TextInput(WIDE), **named)
    named["required"] = is_needed
    if kind is int:
        return forms.IntegerField(
            min_value=-LARGEST_INTEGER, max_value=LARGEST_INTEGER - 1, **named
        )
    if kind is float:
        return forms.FloatField(**named)
    if isinstance(kind, tuple):
        choices = kind if parameter.is_required else (("", "---------"), *kind)
        return forms.TypedChoiceField(choices=choices, coerce=json.loads, empty_value=None, **named)
    if kind is dict:
        return ValueField(dict, **named)
    return ValueField(list if kind is list else object, **named)


def _initial(parameter: Parameter) -> Any:
    default = parameter.default
    if default is None or parameter.kind in (bool, int, float, str):
        return default
    try:
        return json.dumps(default.value if isinstance(default, Enum) else default)
    except (TypeError, ValueError):
        return None


def _help(parameter: Parameter) -> str:
    """Its annotation, and what applies where it is left out."""
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
    except Exception:  # Whatever a default's repr() does, the form is shown.
        return type(default).__name__


def call_of(
    found: Sequence[Parameter], given: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that the values make; names that are not given are left out.

    Raises ValueError where `*args` are given behind one that is left out.
    """
    rest = next((each for each in found if each.place is inspect.Parameter.VAR_POSITIONAL), None)
    is_by_place = rest is not None and rest.name in given
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    missing = ""
    for parameter in found:
        if parameter.place is inspect.Parameter.VAR_POSITIONAL:
            args.extend(given.get(parameter.name, ()))
        elif parameter.place is inspect.Parameter.VAR_KEYWORD:
            kwargs.update(given.get(parameter.name, {}))
        elif _goes_by_place(parameter, is_by_place):
            if parameter.name not in given:
                missing = missing or parameter.name
            elif missing:
                raise ValueError(missing)
            else:
                args.append(given[parameter.name])
        elif parameter.name in given:
            kwargs[parameter.name] = given[parameter.name]
    if is_by_place and missing:
        raise ValueError(missing)
    return args, kwargs


def _goes_by_place(parameter: Parameter, is_by_place: bool) -> bool:
    if parameter.place is inspect.Parameter.POSITIONAL_ONLY:
        return True
    return is_by_place and parameter.place is inspect.Parameter.POSITIONAL_OR_KEYWORD
