"""What the API may not enqueue, no schedule enqueues at its word; what it hides, no edit shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import Every, schedules, workflow
from taskqueue.models import Audit, Occurrence, Schedule, Task, Workflow
from taskqueue.workflows import Builder
from tests.api.conftest import ApiClient
from tests.sample.rest_tasks import sign_in, tell
from tests.sample.tasks import add, greet, log_in

pytestmark = pytest.mark.django_db
HOURLY = {"kind": "every", "interval": 3600}
SECRET = "hunter2"


@workflow(name="exposed.flow", api=True, sensitive={"token"})
def flow(wf: Builder, token: str) -> None:
    """May be scheduled over REST, though its step may not be enqueued there."""
    wf.step(add.s(1, 1))


@workflow(name="exposed.hidden")
def hidden_flow(wf: Builder, token: str) -> None:
    """May not."""
    wf.step(add.s(1, 1))


def test_a_run_of_a_workflow_may_have_other_arguments(root: ApiClient) -> None:
    schedules.create("flows", flow, Every(days=365), args=[SECRET])
    answer = root.act("schedules/flows/run/", {"args": ["other"]})
    assert answer.status_code == 202
    assert Workflow.objects.get(id=answer.json()["workflow_id"]).args == ["other"]
    assert Schedule.objects.get().args == [SECRET]
    Workflow.objects.update(status="succeeded", finished_at=timezone.now())
    Occurrence.objects.update(status="ended")
    for wrong in (["a", "b"], ["[redacted]"]):
        assert root.act("schedules/flows/run/", {"args": wrong}).status_code == 422
    assert Workflow.objects.count() == 1


@pytest.mark.parametrize("task_name", [sign_in.name, log_in.name, "gone"])
def test_another_task_type_is_not_given_the_arguments_of_the_one_before(
    task_name: str, root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    for name, call in (("place", {"args": ["ann", SECRET]}),
                       ("word", {"kwargs": {"user": "ann", "password": SECRET}})):  # fmt: skip
        schedules.create(name, sign_in, Every(hours=1), **call)  # type: ignore[arg-type]
    Schedule.objects.update(task_name=task_name)
    for client in (root, member("view_schedule", "edit_schedules", "enqueue")):
        for name in ("place", "word"):
            for more in ({}, {"kwargs": {}} if name == "place" else {"args": []}):
                answer = client.ask("PATCH", f"schedules/{name}/", {"task": tell.name, **more})
                assert (answer.status_code, answer.json()["code"]) == (422, "invalid_schedule")
                assert SECRET not in answer.content.decode()
                assert "anew" in answer.json()["detail"]
    assert set(Schedule.objects.values_list("task_name", flat=True)) == {task_name}
    anew = {"task": tell.name, "args": [], "kwargs": {"x": 1}}
    answer = root.ask("PATCH", "schedules/place/", anew)
    assert (answer.status_code, answer.json()["args"]) == (200, [])
    assert answer.json()["kwargs"] == {"x": 1}


def test_the_type_that_it_has_may_be_named_without_its_arguments(root: ApiClient) -> None:
    schedules.create("same", sign_in, Every(hours=1), args=["ann", SECRET])
    answer = root.ask("PATCH", "schedules/same/", {"task": sign_in.name, "overlap": "allow"})
    assert (answer.status_code, answer.json()["args"]) == (200, ["ann", "[redacted]"])


@pytest.fixture
def inner() -> Schedule:
    """A schedule of a task type that is not marked."""
    return schedules.create("inner", add, Every(hours=1), args=[1])


CHANGES: list[dict[str, Any]] = [
    {"args": [2]}, {"rule": HOURLY}, {"overlap": "allow"}, {"missed": "all"}, {"enabled": True},
    {"pause_after_failures": 3}, {"options": {}}, {"enabled": False, "overlap": "allow"},
]  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES)
def test_a_schedule_of_what_is_not_exposed_is_not_edited(
    changes: dict[str, Any], root: ApiClient, inner: Schedule
) -> None:
    answer = root.ask("PATCH", "schedules/inner/", changes)
    assert (answer.status_code, answer.json()["code"]) == (403, "task_not_exposed")
    inner.refresh_from_db()
    assert inner.changed_at == inner.created_at


@pytest.mark.parametrize("source", ["row", "code"])
def test_a_schedule_of_what_is_not_exposed_is_neither_run_nor_resumed_and_may_rest(
    source: str, root: ApiClient, inner: Schedule
) -> None:
    Schedule.objects.update(source=source)
    assert root.act("schedules/inner/pause/").json()["conditions"] == ["paused"]
    for verb in ("run", "resume"):
        answer = root.act(f"schedules/inner/{verb}/")
        assert (answer.status_code, answer.json()["code"]) == (403, "task_not_exposed"), verb
    assert root.look("schedules/inner/").json()["conditions"] == ["paused"]
    assert not Task.objects.exists()
    assert not Occurrence.objects.filter(status="enqueued").exists()
    assert [each.verb for each in Audit.objects.order_by("id")][1:] == ["pause"]


def test_a_schedule_of_what_is_not_exposed_is_switched_off_and_deleted(
    root: ApiClient, inner: Schedule
) -> None:
    answer = root.ask("PATCH", "schedules/inner/", {"enabled": False, "reason": "enough"})
    assert (answer.status_code, answer.json()["enabled"]) == (200, False)
    assert root.ask("DELETE", "schedules/inner/").status_code == 204


def test_a_schedule_of_what_is_not_exposed_is_given_what_is(
    root: ApiClient, inner: Schedule
) -> None:
    body = {"task": greet.name, "args": ["Ann"], "kwargs": {}}
    answer = root.ask("PATCH", "schedules/inner/", body)
    assert (answer.status_code, answer.json()["task"]) == (200, greet.name)
    assert root.act("schedules/inner/run/").status_code == 202


def test_a_schedule_whose_type_is_not_known_is_neither_run_nor_resumed(
    root: ApiClient, inner: Schedule
) -> None:
    Schedule.objects.update(task_name="gone")
    assert root.act("schedules/inner/pause/").status_code == 200
    for verb in ("run", "resume"):
        answer = root.act(f"schedules/inner/{verb}/")
        assert (answer.status_code, answer.json()["code"]) == (422, "unknown_task"), verb


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_addresses_leave_out_is_refused(name: str, root: ApiClient) -> None:
    body = {"name": name, "task": greet.name, "rule": HOURLY, "args": ["Ann"]}
    answer = root.act("schedules/", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_schedule")
    assert not Schedule.objects.exists()


def test_a_workflow_is_scheduled_run_and_shown_if_it_is_exposed(root: ApiClient) -> None:
    body = {"name": "flow", "rule": HOURLY, "kwargs": {"token": SECRET}}
    refused = root.act("schedules/", {**body, "task": hidden_flow.name})
    assert (refused.status_code, refused.json()["code"]) == (403, "task_not_exposed")
    made = root.act("schedules/", {**body, "task": flow.name, "options": {"deadline": 60}})
    assert made.status_code == 201, made.json()
    told = made.json()
    assert (told["task"], told["is_workflow"]) == (flow.name, True)
    assert (told["kwargs"], told["options"]) == ({"token": "[redacted]"}, {"deadline": 60})
    run = root.act("schedules/flow/run/", {}).json()
    workflow_id = str(Workflow.objects.get().id)
    assert (run["workflow_id"], run["task_id"], run["task_status"]) == (
        workflow_id, None, "running",
    )  # fmt: skip
    (listed,) = root.look("schedules/flow/runs/").json()["results"]
    assert (listed["workflow_id"], listed["status"]) == (workflow_id, "enqueued")
    shown = root.look("schedules/flow/").json()
    assert (shown["last_workflow_id"], shown["last_task_status"]) == (workflow_id, "running")
    kept = root.ask("PATCH", "schedules/flow/", {"overlap": "allow"})
    assert kept.status_code == 200
    secret = root.ask("PATCH", "schedules/flow/", {"kwargs": {"token": "[redacted]"}})
    assert (secret.status_code, secret.json()["code"]) == (422, "redacted_value")


def test_the_status_of_a_workflow_is_for_those_who_may_view_workflows(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    schedules.create("flow", flow, Every(hours=1), args=["t"])
    schedules.run_now("flow")
    for permissions, status in (((), ""), (("view_workflow",), "running")):
        client = member("view_schedule", "view_occurrence", *permissions)
        (listed,) = client.look("schedules/flow/runs/").json()["results"]
        assert listed["task_status"] == status
        assert client.look("schedules/flow/").json()["last_task_status"] == status
