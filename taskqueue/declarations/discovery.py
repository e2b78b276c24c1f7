"""Discover definitions: import the project's `tasks` modules, and name functions uniquely."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from threading import RLock
from typing import Any

from django.utils.module_loading import autodiscover_modules

_lock = RLock()
_is_complete = False


def discover_tasks() -> None:
    """Import the `tasks` module of every installed app, once. Raises errors of these modules."""
    global _is_complete
    with _lock:
        if not _is_complete:
            autodiscover_modules("tasks")
            _is_complete = True


def is_same_function(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Return whether both run the same code with the same defaults and enclosed values."""
    one, other = inspect.unwrap(one), inspect.unwrap(other)
    if one is other:
        return True
    code = getattr(one, "__code__", None)
    if code is None or code is not getattr(other, "__code__", None):
        return False
    return list(map(id, _values_of(one))) == list(map(id, _values_of(other)))


def _values_of(function: Any) -> list[Any]:
    """Return the defaults of a function, and the values that it closes over."""
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *enclosed]


def is_same_place(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Return whether both have the same name in the same module."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def run_of(body: Callable[..., Any]) -> object:
    """Return a value that differs from one run of the function's module to the next.

    Each run gives the module another specification. A module without one, such as a shell's, is
    run again with every line.
    """
    return getattr(sys.modules.get(body.__module__), "__spec__", None) or object()


def place(body: Callable[..., Any]) -> str:
    """Return the module, name, file and line of a function, for people."""
    code = getattr(inspect.unwrap(body), "__code__", None)
    line = f"{code.co_filename}:{code.co_firstlineno}" if code else ""
    return f"{body.__module__}.{body.__qualname__} ({line})"
