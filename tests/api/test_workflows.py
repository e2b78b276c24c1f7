"""Workflows over REST: enqueued by name or with steps, shown, drawn and changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import modify_settings
from django.utils import timezone

from taskqueue import chain, chord
from taskqueue.engine.workflows import pruning
from taskqueue.models import Audit, Lease, Step, Task, Workflow
from taskqueue.results.workflows import WorkflowRun, get_workflow
from tests.api.conftest import ApiClient
from tests.sample import rest_workflows
from tests.sample.rest_tasks import order, sign_in, tell
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish, statuses

pytestmark = pytest.mark.django_db
FRAGILE = rest_workflows.fragile.name
DELIVER = rest_workflows.deliver.name
SECRET = "correct-horse-battery-staple"
STEPS: list[dict[str, Any]] = [
    {"name": "count", "task": order.name, "args": [3, 2]},
    {"name": "each", "task": tell.name, "map": [1, 2, 3], "after": "count"},
    {
        "name": "many", "task": tell.name, "kwargs": {"count": {"$step": "count"}},
        "when": {"op": ">", "of": [{"$step": "count"}, 5]},
    },
    {"name": "few", "task": tell.name, "when": {"op": "<=", "of": [{"$step": "count"}, 5]}},
    {"name": "mend", "task": tell.name, "after": [{"step": "count", "when": "failed"}]},
]  # fmt: skip


def started(client: ApiClient, **body: Any) -> WorkflowRun:
    answer = client.act("workflows/", body)
    assert answer.status_code == 201, answer.content
    assert answer["Location"] == f"/api/v1/workflows/{answer.json()['id']}/"
    return get_workflow(answer.json()["id"])


def claimed(run: WorkflowRun) -> Lease:
    """Let a worker hold its first task."""
    now = timezone.now()
    task = Task.objects.filter(step__workflow=run.id, status="ready")[0]
    Task.objects.filter(id=task.id).update(
        status="running", attempt=1, started_at=now, running_leases=1, open_slots=0
    )
    return Lease.objects.create(
        task=task, attempt=1, worker_id="w1", claimed_at=now, started_at=now,
        expires_at=now + timedelta(minutes=1),
    )  # fmt: skip


def test_a_workflow_is_enqueued_by_its_name_and_shown(root: ApiClient) -> None:
    kwargs = {"day": "monday", "token": SECRET, "copies": 2}
    run = finish(started(root, name=DELIVER, kwargs=kwargs, reason="asked for"))
    answer = root.look(f"workflows/{run.id}/")
    told = answer.json()
    assert SECRET not in answer.content.decode()
    assert (told["status"], told["version"], told["return_value"]) == (
        "succeeded", "2", [[2], {}],
    )  # fmt: skip
    assert told["kwargs"] == {"day": "monday", "token": "[redacted]", "copies": 2}
    assert told["step_counts"]["succeeded"] == told["ended"] == told["members"] == 2
    assert told["can"] == ["retry", "delete"]
    entry = Audit.objects.get()
    assert (entry.noun, entry.verb, entry.subject, entry.detail, entry.reason, entry.actor) == (
        "workflow", "enqueue", str(run.id), DELIVER, "asked for", "root",
    )  # fmt: skip


def test_a_workflow_is_enqueued_with_steps_of_its_own(root: ApiClient) -> None:
    run = finish(started(root, name="by.hand", steps=STEPS))
    assert (run.name, run.status) == ("by.hand", "succeeded")
    assert statuses(run) == {
        "count": "succeeded", "each": "succeeded", "many": "succeeded", "few": "skipped",
        "mend": "skipped",
    }  # fmt: skip
    assert finish(started(root, steps=STEPS[:1])).name == "workflow"


def test_options_of_steps_are_those_of_an_enqueue(root: ApiClient) -> None:
    options = {"priority": 7, "timeout": 30, "queue_name": "mail"}
    run = started(root, steps=[{"name": "one", "task": tell.name, "options": options}])
    task = Task.objects.get(step__workflow=run.id)
    assert (task.priority, task.options["timeout"], task.queue_name) == (7, 30, "mail")


def test_steps_are_pages_with_their_errors_and_tasks(root: ApiClient) -> None:
    run = finish(chord([fail.s("no"), fail.s("never")], echo.s()).enqueue())
    first = root.look(f"workflows/{run.id}/steps/?limit=1").json()
    [failed] = first["results"]
    assert failed["error"]["message"] == "no"
    assert (failed["status"], failed["ended"], failed["members"]) == ("failed", 2, 2)
    second = root.get(first["next"]).json()
    [cancelled] = second["results"]
    assert (cancelled["status"], second["next"]) == ("cancelled", None)
    assert cancelled["after"] == [{"step": failed["name"], "when": "succeeded"}]
    only = root.look(f"workflows/{run.id}/steps/?status=cancelled").json()["results"]
    assert only == [cancelled]

    address = f"workflows/{run.id}/tasks/?step={failed['name']}"
    tasks = root.look(address).json()["results"]
    assert [(task["place"], task["error_message"]) for task in tasks] == [(0, "no"), (1, "never")]
    page = root.look(f"{address}&limit=1").json()
    assert page["results"] == tasks[:1]
    assert root.get(page["next"]).json() == {"results": tasks[1:], "next": None}
    answer = root.look(f"workflows/{run.id}/tasks/?step={failed['name']}x")
    assert (answer.status_code, answer.json()["code"]) == (404, "step_not_found")
    assert f"Did you mean '{failed['name']}'?" in answer.json()["detail"]


def test_tasks_are_for_those_who_may_see_tasks(root: ApiClient, member: Any) -> None:
    run = finish(chain(add.s(1, 2), add.s(3)).enqueue())
    viewer = member("view_workflow")
    assert viewer.look(f"workflows/{run.id}/").json()["return_value"] is None
    steps = viewer.look(f"workflows/{run.id}/steps/").json()["results"]
    assert {step["task_id"] for step in steps} == {None}
    assert viewer.look(f"workflows/{run.id}/tasks/?step=add").status_code == 403
    assert root.look(f"workflows/{run.id}/").json()["return_value"] == 6


@modify_settings(MIDDLEWARE={"remove": ["tests.csp.StrictPolicy"]})
def test_a_graph_is_drawn_as_json_svg_and_mermaid(root: ApiClient) -> None:
    run = finish(started(root, name="by.hand", steps=STEPS))
    drawn = root.look(f"workflows/{run.id}/graph/").json()
    assert {node["name"]: node["status"] for node in drawn["nodes"]} == statuses(run)
    assert {"from": "count", "to": "mend", "when": "failed"} in drawn["links"]
    image = root.look(f"workflows/{run.id}/graph/?format=svg")
    assert image["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert "sandbox" in image["Content-Security-Policy"]
    assert image.content.decode().startswith("<svg")
    assert "many" in image.content.decode()
    again = root.look(f"workflows/{run.id}/graph/?format=svg", if_none_match=image["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    text = root.look(f"workflows/{run.id}/graph/?format=mermaid")
    assert text["Content-Type"] == "text/plain; charset=utf-8"
    assert "flowchart" in text.content.decode()
    assert root.look(f"workflows/{run.id}/graph/?format=png").status_code == 400


def test_the_list_has_pages_and_filters(root: ApiClient) -> None:
    done = finish(started(root, name=DELIVER, kwargs={"day": "monday"}))
    runs = [started(root, name=DELIVER, kwargs={"day": "tuesday"}) for _ in range(3)]
    other = started(root, steps=STEPS)
    newest = [str(run.id) for run in (other, *reversed(runs), done)]

    def ids(query: str) -> list[str]:
        answer = root.look(f"workflows/?{query}")
        assert answer.status_code == 200, answer.content
        return [each["id"] for each in answer.json()["results"]]

    assert ids("") == newest
    first = root.look("workflows/?limit=2").json()
    assert [each["id"] for each in first["results"]] == newest[:2]
    assert [each["id"] for each in root.get(first["next"]).json()["results"]] == newest[2:4]
    assert ids("status=succeeded") == [str(done.id)]
    assert ids("status=succeeded,running") == newest
    assert ids(f"name={DELIVER}") == newest[1:]
    assert ids("name=workf*") == newest[:1]
    assert ids(f"id={done.id}") == [str(done.id)]
    assert ids(f"parent={done.id}") == []
    assert ids("created_before=2020-01-01T00:00:00Z") == []
    assert ids("created_after=2020-01-01T00:00:00Z") == newest
    root.act(f"workflows/{other.id}/pause/")
    assert ids("paused=true") == [str(other.id)]
    assert ids("paused=false") == newest[1:4]
    assert ids("schedule=none") == ids("unique_key=none") == []
    for wrong in ("status=done", "id=x", "parent=x", "cursor=x", "paused=1", "kind=task"):
        assert root.look(f"workflows/?{wrong}").status_code == 400, wrong


@pytest.mark.parametrize("part", ["", "steps/", "graph/", "tasks/?step=a"])
def test_one_that_does_not_exist_is_404(part: str, root: ApiClient) -> None:
    for key in ("0197a0e0-0000-7000-8000-000000000000", "x"):
        answer = root.look(f"workflows/{key}/{part}")
        assert (answer.status_code, answer.json()["code"]) == (404, "workflow_not_found")


def test_a_workflow_is_paused_resumed_cancelled_and_deleted(root: ApiClient) -> None:
    run = started(root, name=DELIVER, kwargs={"day": "monday"})
    at = f"workflows/{run.id}/"
    paused = root.act(f"{at}pause/", {"reason": "wait"}).json()
    assert (paused["status"], paused["can"]) == ("running", ["cancel", "resume"])
    assert paused["paused_at"]
    assert root.act(f"{at}resume/").json()["paused_at"] is None
    answer = root.ask("DELETE", at)
    assert (answer.status_code, answer.json()["code"]) == (409, "transition_refused")
    cancelled = root.act(f"{at}cancel/", {"reason": "enough"}).json()
    assert (cancelled["status"], cancelled["stop_reason"]) == ("stopping", "enough")
    assert finish(run).status == "cancelled"
    assert root.act(f"{at}cancel/").status_code == 409
    assert root.ask("DELETE", f"{at}?reason=old").status_code == 204
    assert not Task.objects.exists()
    assert root.look(at).status_code == 404
    entries = Audit.objects.filter(noun="workflow").order_by("id")
    assert list(entries.values_list("verb", "reason")) == [
        ("enqueue", ""), ("pause", "wait"), ("resume", ""), ("cancel", "enough"),
        ("delete", "old"),
    ]  # fmt: skip


def test_cancelling_a_running_workflow_needs_the_permission_to_stop(
    root: ApiClient, member: Any
) -> None:
    operator = member("view_workflow", "operate")
    run = started(root, name=DELIVER, kwargs={"day": "monday"})
    lease = claimed(run)
    answer = operator.act(f"workflows/{run.id}/cancel/")
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert operator.look(f"workflows/{run.id}/").json()["can"] == ["pause"]
    lease.refresh_from_db()
    assert lease.stop_requested_at is None
    stopper = member("view_workflow", "operate", "stop")
    assert stopper.act(f"workflows/{run.id}/cancel/").json()["status"] == "stopping"
    lease.refresh_from_db()
    assert lease.stop_requested_at is not None


def test_of_a_large_one_workers_delete_the_rest(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)
    run = finish(chord([add.s(n, 1) for n in range(5)], echo.s()).enqueue())
    answer = root.ask("DELETE", f"workflows/{run.id}/")
    assert (answer.status_code, answer.json()["id"]) == (202, str(run.id))
    assert Task.objects.count() == 4


@pytest.fixture
def broken() -> Iterator[set[str]]:
    rest_workflows.BROKEN.add("load")
    yield rest_workflows.BROKEN
    rest_workflows.BROKEN.clear()


def test_a_failed_workflow_is_retried(root: ApiClient, broken: set[str]) -> None:
    run = finish(started(root, name=FRAGILE))
    at = f"workflows/{run.id}/"
    assert root.look(at).json()["can"] == ["retry", "resolve", "delete"]
    broken.clear()
    shown = root.act(f"{at}retry/", {"reason": "mended"}).json()
    assert (shown["status"], shown["error"], shown["can"]) == ("running", None, ["cancel", "pause"])
    assert finish(run).status == "succeeded"
    assert statuses(run) == {"load": "succeeded", "store": "succeeded"}
    assert Lease.objects.count() == 3
    assert root.act(f"{at}retry/").json()["code"] == "transition_refused"
    assert root.act(f"{at}retry/", {"from_step": "store"}).json()["status"] == "running"
    assert finish(run).status == "succeeded"
    assert Lease.objects.count() == 4
    entries = Audit.objects.filter(noun="workflow", verb="retry").order_by("id")
    assert list(entries.values_list("reason", "detail")) == [
        ("mended", ""), ("", "from step store"),
    ]  # fmt: skip


def test_a_failed_step_is_resolved(root: ApiClient, broken: set[str]) -> None:
    run = finish(started(root, name=FRAGILE))
    at = f"workflows/{run.id}/resolve/"
    answer = root.act(at, {"step": "store", "value": 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "transition_refused")
    for body in ({"value": 1}, {"step": "load"}, {"step": "", "value": 1}):
        assert root.act(at, body).status_code == 422
    assert root.act(at, {"step": "load", "value": None}).json()["status"] == "running"
    assert finish(run).status == "succeeded"
    assert statuses(run) == {"load": "succeeded", "store": "succeeded"}


def test_an_unknown_step_is_named(root: ApiClient, broken: set[str]) -> None:
    run = finish(started(root, name=FRAGILE))
    for verb, body in (("retry", {"from_step": "laod"}), ("resolve", {"step": "laod", "value": 1})):
        answer = root.act(f"workflows/{run.id}/{verb}/", body)
        assert (answer.status_code, answer.json()["code"]) == (404, "step_not_found")
        assert "'load'" in answer.json()["detail"]
    assert run.status == "failed"


def test_a_failed_task_of_a_step_is_retried(root: ApiClient, broken: set[str]) -> None:
    run = finish(started(root, name=FRAGILE))
    failed = Task.objects.get(status="failed")
    assert "retry" in root.look(f"tasks/{failed.id}/").json()["can"]
    broken.clear()
    assert root.act(f"tasks/{failed.id}/retry/").json()["status"] == "ready"
    assert finish(run).status == "succeeded"


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume"])
def test_who_was_slower_changes_nothing(verb: str, root: ApiClient) -> None:
    run = started(root, name=DELIVER, kwargs={"day": "monday"})
    seen = root.look(f"workflows/{run.id}/")["ETag"]
    root.act(f"workflows/{run.id}/pause/")
    answer = root.act(f"workflows/{run.id}/{verb}/", if_match=seen)
    assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")
    now = root.look(f"workflows/{run.id}/")["ETag"]
    assert root.act(f"workflows/{run.id}/{verb}/", if_match=now).status_code == 200


def test_a_request_with_a_key_is_carried_out_once(root: ApiClient) -> None:
    body = {"name": DELIVER, "kwargs": {"day": "monday"}}
    first = root.act("workflows/", body, idempotency_key="k")
    second = root.act("workflows/", body, idempotency_key="k")
    assert (second.status_code, second.json()) == (201, first.json())
    assert second["Idempotency-Replayed"] == "true"
    assert second["Location"] == first["Location"]
    assert Workflow.objects.count() == 1


def test_the_holder_of_a_unique_key_is_given_back_or_named(root: ApiClient) -> None:
    name = rest_workflows.only_one.name
    run = started(root, name=name)
    answer = root.act("workflows/", {"name": name})
    assert (answer.status_code, answer.json()["id"]) == (200, str(run.id))
    assert not answer.json()["created"]
    raising = rest_workflows.only_one_or_raise.name
    holder = started(root, name=raising)
    answer = root.act("workflows/", {"name": raising})
    told = answer.json()
    assert (answer.status_code, told["code"]) == (409, "duplicate_workflow")
    assert told["workflow_id"] == str(holder.id)
    assert Workflow.objects.count() == 2


def test_a_wait_ends_with_the_workflow(root: ApiClient) -> None:
    run = finish(started(root, name=DELIVER, kwargs={"day": "monday"}))
    assert root.look(f"workflows/{run.id}/?wait=30").json()["is_finished"]
    waiting = started(root, name=DELIVER, kwargs={"day": "monday"})
    assert not root.look(f"workflows/{waiting.id}/?wait=1").json()["is_finished"]


def test_the_types_that_may_be_enqueued_are_told_with_their_arguments(root: ApiClient) -> None:
    types = {each["name"]: each for each in root.look("workflow-types/").json()["results"]}
    assert DELIVER in types
    assert rest_workflows.hidden.name not in types
    told = types[DELIVER]
    assert (told["version"], told["deadline"], told["sensitive"]) == ("2", 3600.0, ["token"])
    assert told["doc"] == "Packs what was ordered that day, and tells of it."
    assert set(told["arguments"]["properties"]["kwargs"]["properties"]) == {
        "day", "token", "copies",
    }  # fmt: skip


def test_secrets_in_steps_are_never_shown(root: ApiClient) -> None:
    steps = [{"name": "in", "task": sign_in.name, "args": ["ann", SECRET], "options": {
        "unique_key": None}}]  # fmt: skip
    run = started(root, name="by.hand", steps=steps)
    for part in ("", "steps/", "graph/", "graph/?format=svg", "tasks/?step=in"):
        answer = root.look(f"workflows/{run.id}/{part}")
        assert answer.status_code == 200
        assert SECRET not in answer.content.decode()
    assert Step.objects.get().name == "in"
    assert SECRET not in str(list(Audit.objects.values_list()))
