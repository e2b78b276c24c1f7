"""Addresses of resources, wherever the project has mounted the API."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework.request import Request

PARAMETERS = {"task": "task_id", "operation": "operation_id", "schedule": "name"}
"""The parameter of the address of each kind of resource."""


def address(request: Request, kind: str, *key: Any) -> str:
    """Return the path of a resource, in the mount of the request."""
    match = request.resolver_match
    assert match is not None
    own = set(PARAMETERS.values())
    mount = {name: value for name, value in match.kwargs.items() if name not in own}
    part = {PARAMETERS[kind]: key[0]} if key else {}
    return reverse(f"{match.namespace}:{kind}", kwargs={**mount, **part})
