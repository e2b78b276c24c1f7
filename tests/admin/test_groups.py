"""The page of groups of collected events, and its button that enqueues what one has collected."""

from __future__ import annotations

import pytest

from taskqueue.models import Audit, Task
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import messages_of
from tests.batches.test_batches import digest, patient

pytestmark = pytest.mark.django_db
PAGE = "/admin/taskqueue/queue/groups/"
SECRET = "correct-horse-battery-staple"


def test_groups_are_counted_without_their_events(log_in_as: LogIn) -> None:
    patient.collect_many([1, SECRET], group="user:42")
    digest.collect(3)
    client = log_in_as("viewer", "view_task", "view_queue")
    page = client.get(PAGE).content.decode()
    assert "user:42" in page
    assert SECRET not in page
    assert "Fire" not in page
    [table] = client.get(PAGE, {"q": patient.name}).context["tables"]
    assert [(group.name, group.events) for group in table.rows] == [(patient.name, 2)]
    assert PAGE in client.get("/admin/taskqueue/queue/").content.decode()
    assert client.post(PAGE, {"name": patient.name, "group": "user:42"}).status_code == 403


def test_a_group_is_fired_once_with_the_reason_in_the_audit(log_in_as: LogIn) -> None:
    patient.collect_many([1, 2], group=" user:42 ")
    client = log_in_as("viewer", "view_task", "operate")
    body = {"name": patient.name, "group": " user:42 ", "reason": "now"}
    assert "enqueued" in messages_of(client, PAGE, body)
    assert Task.objects.get().name == patient.name
    assert (Audit.objects.get().verb, Audit.objects.get().reason) == ("fire", "now")
    assert "has no events" in messages_of(client, PAGE, body)
    assert "Name: " in messages_of(client, PAGE, {"name": ""})
    assert Task.objects.count() == 1
