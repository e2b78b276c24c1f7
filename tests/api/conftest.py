"""Clients of the API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.test import Client

ROOT = "/api/v1/"


class ApiClient(Client):
    """Asks the API by paths below its root; bodies are JSON. The web server has threads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"wsgi.multithread": True, **options})

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer. `body` is turned into JSON, unless it is text already."""
        given: dict[str, Any] = {"headers": {k.replace("_", "-"): v for k, v in headers.items()}}
        if body is not None:
            given["data"] = body if isinstance(body, str | bytes) else json.dumps(body)
            given["content_type"] = "application/json"
        return self.generic(method, ROOT + path, **given)

    def look(self, path: str, **headers: str) -> Any:
        """The answer to a GET."""
        return self.ask("GET", path, **headers)

    def act(self, path: str, body: Any = None, **headers: str) -> Any:
        """The answer to a POST; without a body an empty object is sent."""
        return self.ask("POST", path, {} if body is None else body, **headers)


@pytest.fixture(autouse=True)
def _forget_requests() -> None:
    """How often somebody has asked is kept in the cache of this process."""
    cache.clear()


@pytest.fixture
def anonymous() -> ApiClient:
    return ApiClient()


@pytest.fixture
def root(db: None) -> ApiClient:
    """Who may do everything."""
    client = ApiClient()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def member(db: None) -> Callable[..., ApiClient]:
    """`member("view_task", "operate")`: somebody with these permissions and no others."""

    def make(*codenames: str) -> ApiClient:
        user = User.objects.create_user(f"member {User.objects.count()}")
        found = Permission.objects.filter(
            content_type__app_label="taskqueue", codename__in=codenames
        )
        assert found.count() == len(codenames), codenames
        user.user_permissions.set(found)
        client = ApiClient()
        client.force_login(user)
        return client

    return make
