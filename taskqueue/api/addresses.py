"""Addresses of the API, wherever the project has mounted it."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework.request import Request

PARAMETERS = {"task": "task_id", "operation": "operation_id", "schedule": "name"}
"""What the address of one of these holds."""


def address(request: Request, kind: str, *key: Any) -> str:
    """The path of a resource, in the same mount as the one that was asked for."""
    match = request.resolver_match
    assert match is not None
    own = set(PARAMETERS.values())
    mount = {name: value for name, value in match.kwargs.items() if name not in own}
    part = {PARAMETERS[kind]: key[0]} if key else {}
    return reverse(f"{match.namespace}:{kind}", kwargs={**mount, **part})
