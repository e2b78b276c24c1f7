"""Whether two functions that claim one name are one function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any


def is_same_function(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether the second is the first, met again: it does the same, with the same values."""
    one, other = inspect.unwrap(one), inspect.unwrap(other)
    if one is other:
        return True
    code = getattr(one, "__code__", None)
    if code is None or code is not getattr(other, "__code__", None):
        return False
    return list(map(id, _values_of(one))) == list(map(id, _values_of(other)))


def _values_of(function: Any) -> list[Any]:
    """What a function has beside its code: defaults, and what it closes over."""
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *enclosed]


def is_same_place(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether both stand under one name in one module."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def run_of(body: Callable[..., Any]) -> object:
    """What tells one run of a module from the next: each gives it another specification.

    A module that has none, such as a shell's, is run anew with every line.
    """
    return getattr(sys.modules.get(body.__module__), "__spec__", None) or object()


def place(body: Callable[..., Any]) -> str:
    """Where a function stands, for people."""
    code = getattr(inspect.unwrap(body), "__code__", None)
    line = f"{code.co_filename}:{code.co_firstlineno}" if code else ""
    return f"{body.__module__}.{body.__qualname__} ({line})"
