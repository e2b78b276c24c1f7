"""How a form asks for a parameter: the names of its fields, and what they mean when left alone."""

from __future__ import annotations

from enum import Enum
from typing import Any

from taskqueue.declarations.parameters import EMPTY, VARIABLE, Parameter

PREFIX, NULL_PREFIX = "arg_", "null_"
"""Before the names of the fields: options have fields too."""


def field_name(parameter: Parameter) -> str:
    """Of its field."""
    return PREFIX + parameter.name


def null_name(parameter: Parameter) -> str:
    """Of the field that gives None."""
    return NULL_PREFIX + parameter.name


def needs_null_box(parameter: Parameter) -> bool:
    """Whether None is a value that its own field cannot give, nor is given if it is empty."""
    if not parameter.is_nullable or parameter.default is None or parameter.place in VARIABLE:
        return False
    kind = parameter.kind
    return kind is str or (kind in (int, float) and parameter.default is not EMPTY)


def is_left_out(parameter: Parameter, value: Any, raw: Any) -> bool:
    """Whether what the field holds is the default, which then applies by itself."""
    if parameter.place in VARIABLE:
        return not value
    if parameter.default is EMPTY:
        return False
    is_box = parameter.kind is bool and not (parameter.is_nullable or parameter.is_sensitive)
    is_empty = raw in (None, "") and not is_box
    if is_empty and (parameter.kind is not str or parameter.is_sensitive):
        return True
    return bool(value == _shown_default(parameter))


def _shown_default(parameter: Parameter) -> Any:
    """What the field holds at first."""
    if isinstance(parameter.default, Enum):
        return parameter.default.value
    return "" if parameter.default is None and parameter.kind is str else parameter.default
