"""The API below an address of the project that holds something itself, such as a tenant's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.urls import URLPattern


def anywhere(patterns: Sequence[URLPattern]) -> list[URLPattern]:
    """The patterns, whose views are given what stands in their own part of the address alone."""
    for each in patterns:
        each.callback = _with_its_own(each.callback, frozenset(each.pattern.converters))
    return list(patterns)


def _with_its_own(view: Callable[..., Any], names: frozenset[str]) -> Callable[..., Any]:
    # What Django and drf-spectacular want to know of the view comes along.
    @wraps(view)
    def answer(request: Any, *_: Any, **captured: Any) -> Any:
        return view(request, **{name: captured[name] for name in names})

    return answer
