"""Addresses of the API, wherever the project has mounted it."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework.request import Request


def address(request: Request, name: str, *parts: Any) -> str:
    """The path of a resource, in the same mount as the one that was asked for."""
    match = request.resolver_match
    assert match is not None
    return reverse(f"{match.namespace}:{name}", args=parts)
