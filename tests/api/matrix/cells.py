"""One cell: somebody asks for an address by a method."""

from __future__ import annotations

import json
import re
from typing import Any

from django.test import Client

from taskqueue.api.urls import SLASHLESS, urlpatterns
from taskqueue.core.uuid7 import uuid7
from taskqueue.models import Task
from tests.admin.everything import Everything
from tests.api.matrix.table import NOWHERE, Ask
from tests.sample.tasks import greet

PARAMETER = re.compile(r"<\w+:(\w+)>")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def routes() -> list[str]:
    """Every URL pattern of the API."""
    return [str(each.pattern) for each in urlpatterns if each not in SLASHLESS]


def address(route: str, ask: Ask, made: Everything) -> str:
    """Where the route leads for the row of the request."""

    def fill(found: re.Match[str]) -> str:
        row = made.row("delivery" if found[1] == "delivery_id" else ask.on)
        return str(row.name if found[1] == "name" else row.pk)

    path = "nowhere/" if route == NOWHERE else PARAMETER.sub(fill, route)
    return f"/api/v1/{path}{ask.query}"


def body_of(ask: Ask, made: Everything) -> dict[str, Any]:
    """The body with the ids of the rows that it names."""
    return {name: _filled(value, made) for name, value in ask.body.items()}


def _filled(value: Any, made: Everything) -> Any:
    if isinstance(value, list):
        return [_filled(each, made) for each in value]
    if isinstance(value, str) and value.startswith("$"):
        return str(made.row(value[1:]).pk)
    return value


def knock(client: Client, method: str, url: str, body: Any = None, **headers: str) -> Any:
    """The answer."""
    given = {} if method in ("GET", "HEAD") else {"data": json.dumps(body or {})}
    return client.generic(
        method, url, content_type="application/json", headers=headers or None, **given
    )


def exposed_task(made: Everything, name: str = greet.name) -> Task:
    """Another like the one that failed, of a type that may be enqueued over REST."""
    task = Task.objects.get(id=made.row("failed").id)
    task.id, task.name, task.unique_key = uuid7(), name, None
    task.save(force_insert=True)
    return task
