"""The API below an address that holds something of the project's."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from taskqueue.models import Task
from tests.api.conftest import ApiClient
from tests.sample.tasks import greet

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


def of_the_project(request: HttpRequest, tenant: str) -> HttpResponse:
    return HttpResponse("the project's")


urlpatterns = [
    path("<slug:tenant>/t/", include("taskqueue.api.urls")),
    path("<slug:tenant>/t/report", of_the_project),
    path("of/<slug:name>/", include("taskqueue.api.urls", namespace="of")),
]
ROOT = "/acme/t/"
BODIES: dict[str, dict[str, Any]] = {
    "tasks/": {"name": greet.name, "args": ["Ann"]},
    "schedules/": {
        "name": "a b", "task": greet.name, "args": ["Ann"],
        "rule": {"kind": "every", "interval": 60},
    },
    "operations/": {"verb": "retry", "everything": True},
    "workflows/": {"steps": [{"name": "a", "task": greet.name, "args": ["Ann"]}]},
}  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
def test_the_location_of_an_answer_leads_to_the_new_object(path: str, root: ApiClient) -> None:
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


def test_a_post_without_the_final_slash_is_404_and_names_the_right_address(
    root: ApiClient,
) -> None:
    for address in BODIES:
        path = f"{ROOT}{address}".removesuffix("/")
        answer = root.post(path, BODIES[address], content_type="application/json", follow=True)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert answer.json()["detail"].endswith(f"ends with a slash: {path}/")
    assert not Task.objects.exists()


def test_a_get_without_the_final_slash_is_redirected(root: ApiClient) -> None:
    answer = root.get(f"{ROOT}queues?limit=5")
    assert (answer.status_code, answer["Location"]) == (301, f"{ROOT}queues/?limit=5")
    assert root.get(f"{ROOT}queues?limit=5", follow=True).status_code == 200
    assert ApiClient().get(f"{ROOT}queues?limit=5").status_code == 401


def test_other_addresses_without_a_final_slash_belong_to_the_project(root: ApiClient) -> None:
    assert root.post(f"{ROOT}report").content == b"the project's"
    assert root.get(f"{ROOT}metrics").status_code == 200


def test_a_parameter_of_the_mount_may_have_a_name_of_ours(root: ApiClient) -> None:
    task = greet.using(queue_name="mail").enqueue("Ann")
    for address in (
        "healthz/live", "queues/", "queues/mail/", "stats/", "tasks/", f"tasks/{task.id}/",
    ):  # fmt: skip
        assert root.get(f"/of/acme/{address}").status_code == 200, address
    cancelled = root.post(f"/of/acme/tasks/{task.id}/cancel/", {}, content_type="application/json")
    assert cancelled.json()["status"] == "cancelled"
