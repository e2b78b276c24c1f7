"""Every URL pattern of the admin's pages of this app, found in the URL resolver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, get_resolver

PREFIX = "admin/taskqueue/"


def routes() -> list[str]:
    """The patterns, without what all begin with."""
    found = (route for route, _ in _walk(get_resolver(), ""))
    return [route.removeprefix(PREFIX) for route in found if route.startswith(PREFIX)]


def _walk(resolver: Any, prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for each in resolver.url_patterns:
        route = prefix + str(each.pattern)
        if isinstance(each, URLPattern):
            yield route, each
        else:
            yield from _walk(each, route)
