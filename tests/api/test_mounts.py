"""The API below an address that holds something of the project's."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import include, path

from tests.api.conftest import ApiClient
from tests.sample.tasks import greet

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]
urlpatterns = [path("<slug:tenant>/t/", include("taskqueue.api.urls"))]
ROOT = "/acme/t/"
BODIES: dict[str, dict[str, Any]] = {
    "tasks/": {"name": greet.name, "args": ["Ann"]},
    "schedules/": {
        "name": "a b", "task": greet.name, "args": ["Ann"],
        "rule": {"kind": "every", "interval": 60},
    },
    "operations/": {"verb": "retry", "everything": True},
}  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
def test_what_is_made_is_found_where_the_answer_says(path: str, root: ApiClient) -> None:
    made = root.post(f"{ROOT}{path}", BODIES[path], content_type="application/json")
    assert made.status_code in (201, 202), made.content
    assert made["Location"].startswith(f"{ROOT}{path}")
    found = root.get(made["Location"])
    assert found.status_code == 200
    assert found.json()["reason" if path == "operations/" else "name"] is not None
    assert len(root.get(f"{ROOT}{path}").json()["results"]) == 1


def test_pages_and_documents_lead_to_the_same_mount(root: ApiClient) -> None:
    assert root.get(f"{ROOT}schema/").json()["servers"] == [{"url": "/acme/t"}]
    assert f'data-schema="{ROOT}schema/"' in root.get(f"{ROOT}docs/").content.decode()
    assert root.get(f"{ROOT}healthz/live").status_code == 200
    for address in ("nowhere/", "queues/nowhere/"):
        assert root.get(f"{ROOT}{address}").status_code == 404
