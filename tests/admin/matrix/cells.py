"""One cell: somebody asks for an address by a method."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.admin.utils import quote
from django.test import Client

from tests.admin.everything import Everything
from tests.admin.matrix.kinds import Act, Page, Ways
from tests.admin.matrix.roles import Permissions
from tests.admin.matrix.routes import PREFIX

PARAMETER = re.compile(r"<\w+:(\w+)>")
SAFE = ("GET", "HEAD", "OPTIONS")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def is_let_in(ways: Ways, permissions: Permissions) -> bool:
    """Whether one of the ways is met."""
    return any(way <= permissions for way in ways)


def address(route: str, on: str, made: Everything, *, what: str = "") -> str:
    """Where the route leads for that row."""

    def fill(found: re.Match[str]) -> str:
        if found[1] == "what":
            return what or "retry_with"
        row = made.row(on)
        return str(quote(row.name if found[1] == "name" else str(row.pk)))

    return f"/{PREFIX}{PARAMETER.sub(fill, route)}"


def page_address(route: str, page: Page, made: Everything) -> str:
    """The page with what its address has to say."""
    return address(route, page.on, made)


def act_address(route: str, act: Act, made: Everything) -> str:
    """Where the act is posted to."""
    return address(route, act.on, made, what=act.name) + act.query


def filled_in(body: dict[str, Any], made: Everything) -> dict[str, Any]:
    """The body with the keys of the rows that it names."""
    return {
        name: str(made.row(value[1:]).pk) if str(value).startswith("$") else value
        for name, value in body.items()
    }


def knock(client: Client, method: str, url: str, body: dict[str, Any] | None = None) -> int:
    """The status of the answer, which is read to its end."""
    given = body or {}
    ask = getattr(client, method.lower())
    if method in ("PUT", "PATCH", "DELETE"):
        answer = ask(url, given, content_type="application/json")
    else:
        answer = ask(url, given)
    if answer.streaming:
        answer.getvalue()
    return int(answer.status_code)
