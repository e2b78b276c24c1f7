"""A refusal points to the field that is wrong, also where a verb finds it, not a serializer."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import AlertRule, Endpoint, Queue
from tests.api.conftest import ApiClient
from tests.sample.rest_tasks import pay
from tests.sample.rest_workflows import deliver

pytestmark = pytest.mark.django_db
URL = "https://receiver.example/hook"


@pytest.mark.parametrize(
    ("method", "path", "body", "pointer"),
    [
        ("PATCH", "queues/mail/", {"limit": {"rate": "often"}}, "/limit/rate"),
        ("PATCH", "queues/mail/", {"limit": {"rate": "0/m"}}, "/limit/rate"),
        ("PATCH", "limits/any/", {"rate": "5/9d"}, "/rate"),
        ("POST", "webhooks/", {"url": URL, "kinds": ["task.fialed"]}, "/kinds"),
        ("POST", "webhooks/", {"url": URL, "names": ["shop.[ab]"]}, "/names"),
        ("POST", "webhooks/", {"url": URL, "queues": ["[ab]"]}, "/queues"),
        ("POST", "webhooks/", {"url": "http://receiver.example"}, "/url"),
        ("POST", "alert-rules/", {"name": "a/b", "kind": "failure_rate"}, "/name"),
        (
            "POST",
            "alert-rules/",
            {"name": "a", "kind": "failure_rate", "threshold": 7},
            "/threshold",
        ),
        ("POST", "alert-rules/", {"name": "a", "kind": "failure_rate", "url": URL}, "/url"),
        (
            "POST",
            "alert-rules/",
            {"name": "a", "kind": "failure_rate", "pattern": "m*"},
            "/pattern",
        ),
        ("POST", "alert-rules/", {"name": "a", "kind": "failure_rate", "mail": ["x"]}, "/mail"),
        (
            "POST",
            "alert-rules/",
            {"name": "a", "kind": "failure_rate", "endpoints": ["77"]},
            "/endpoints",
        ),
        (
            "POST",
            "alert-rules/",
            {"name": "a", "kind": "heartbeat", "url": URL, "mail": ["a@b.example"]},
            "/mail",
        ),
    ],
)
def test_the_field_that_is_wrong_is_pointed_at(
    method: str, path: str, body: Any, pointer: str, root: ApiClient
) -> None:
    answer = root.ask(method, path, body)
    assert answer.status_code == 422, answer.content
    told = answer.json()
    assert [each["pointer"] for each in told["errors"]] == [pointer]
    assert told["errors"][0]["detail"] in told["detail"]
    assert not Endpoint.objects.exists()
    assert not AlertRule.objects.filter(name="a").exists()
    assert not Queue.objects.filter(limiter_id__isnull=False).exists()


@pytest.mark.parametrize("task", [pay.name, deliver.name])
def test_arguments_of_a_schedule_are_pointed_at(task: str, root: ApiClient) -> None:
    rule = {"kind": "every", "interval": 60}
    body = {"name": "daily", "task": task, "args": [["x"]], "rule": rule}
    answer = root.act("schedules/", body)
    assert answer.status_code == 422, answer.content
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/args/0"]


@pytest.mark.parametrize(("method", "ending"), [("PATCH", ""), ("POST", "retry/")])
def test_arguments_of_an_edit_and_a_retry_are_pointed_at(
    method: str, ending: str, root: ApiClient
) -> None:
    task = pay.enqueue(1)
    if ending:
        task.cancel()
    answer = root.ask(method, f"tasks/{task.id}/{ending}", {"args": ["one"]})
    assert answer.status_code == 422, answer.content
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/args/0"]
