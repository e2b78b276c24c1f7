"""Operations over REST: asked for, tried dry, watched, called off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue.engine.connections import project_connection
from taskqueue.engine.operations.asking import which_of
from taskqueue.models import Audit, Operation, Task
from tests.api.conftest import ApiClient
from tests.sample.tasks import add, log_in

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
EVERYTHING = {"verb": "retry", "everything": True}


def make_task(name: str, *, status: str, **values: Any) -> Task:
    """A row of that status."""
    now = timezone.now()
    ends = {"finished_at": now} if status == "failed" else {}
    is_running = status == "running"
    slots = {"running_leases": int(is_running), "open_slots": int(not is_running)}
    return Task.objects.create(
        name=name, status=status, queue_name="default", crash_delay=MINUTE, run_after=now,
        ready_at=now, **{"args": [], "kwargs": {}, "options": {}, **slots, **ends, **values},
    )  # fmt: skip


def test_a_dry_run_tells_what_it_would_come_to_and_writes_nothing(root: ApiClient) -> None:
    failed = make_task(add.name, status="failed", error_class="builtins.ValueError")
    make_task(add.name, status="ready")
    body = {"verb": "retry", "q": "name:add", "dry_run": True}
    answer = root.act("operations/", {**body, "q": f"name:{add.name}"})
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert (told["fitting"], told["doable"], told["is_capped"]) == (1, 1, False)
    assert [each["id"] for each in told["sample"]] == [str(failed.id)]
    assert told["sample"][0]["error_class"] == "builtins.ValueError"
    assert not Operation.objects.exists()
    assert not Audit.objects.exists()


def test_tasks_in_the_wrong_status_count_as_fitting_only_if_chosen_by_id(root: ApiClient) -> None:
    ready = make_task(add.name, status="ready")
    for choice, fitting in (
        ({"filter": {"statuses": ["ready"]}}, 0),
        ({"ids": [str(ready.id)]}, 1),
    ):
        told = root.act("operations/", {"verb": "retry", "dry_run": True, **choice}).json()
        assert (told["fitting"], told["doable"]) == (fitting, 0)


def test_an_operation_is_begun_watched_and_called_off(root: ApiClient) -> None:
    task = make_task(add.name, status="failed")
    answer = root.act("operations/", {"verb": "retry", "ids": [str(task.id)], "reason": "why"})
    told = answer.json()
    assert (answer.status_code, told["status"], told["expected"]) == (202, "waiting", 1)
    path = answer["Location"].partition("/api/v1/")[2]
    assert root.look(path).json() == told
    assert root.look("operations/").json()["results"][0]["id"] == told["id"]
    ended = root.act(f"{path}cancel/", {"reason": "no"}).json()
    assert (ended["status"], ended["is_finished"]) == ("cancelled", True)
    assert root.act(f"{path}cancel/").status_code == 409
    assert [each.reason for each in Audit.objects.order_by("id")] == ["why", "no"]


PAIR = {"changes": {"ping_interval": 100, "lease_duration": 1}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"verb": "retry"}, "one of ids, filter, q, everything"),
    ({"verb": "retry", "filter": {}}, "Choose tasks by at least one filter"),
    ({"verb": "retry", "q": ""}, "/q"),
    ({"verb": "retry", "q": "  "}, "The search is empty"),
    ({"verb": "retry", "ids": []}, "/ids"),
    ({"verb": "retry", "everything": False}, "one of ids"),
    ({"verb": "retry", "ids": ["x"]}, "/ids/0"),
    ({"verb": "retry", "q": "status:faild"}, "Did you mean"),
    ({"verb": "retry", "q": "status:failed", "everything": True}, "not by 2"),
    ({"verb": "retry", "filter": {"status": ["failed"]}}, "Did you mean 'statuses'"),
    ({"verb": "retry", "filter": {"arguments": {"a..b": ["x"]}}}, "path"),
    ({"verb": "rtry", "everything": True}, "/verb"),
    ({**EVERYTHING, "arguments": {"run_after": 5}}, "takes no arguments"),
    ({**EVERYTHING, "verb": "reschedule"}, "run_after"),
    ({**EVERYTHING, "verb": "update", "arguments": {"changes": {}}}, "change"),
    ({**EVERYTHING, "verb": "update", "arguments": {"changes": {"priority": 101}}}, "priority"),
    ({**EVERYTHING, "verb": "update", "arguments": {"changes": {"retry_for": None}}}, "retry_for"),
    ({**EVERYTHING, "verb": "update", "arguments": PAIR}, "at most a third of lease_duration"),
    ({**EVERYTHING, "reasn": "x"}, "Did you mean 'reason'"),
]


@pytest.mark.parametrize(("body", "words"), WRONG)
def test_an_invalid_operation_is_refused_with_and_without_dry_run(
    body: dict[str, Any], words: str, root: ApiClient
) -> None:
    make_task(add.name, status="failed")
    for more in ({}, {"dry_run": True}):
        answer = root.act("operations/", {**body, **more})
        assert answer.status_code == 422, (more, answer.content)
        assert words in answer.content.decode()
    assert not Operation.objects.exists()


def test_at_most_ten_thousand_ids_are_taken(root: ApiClient) -> None:
    one = "01a20221-6865-776c-bd4f-50f400b1c364"
    assert root.act("operations/", {"verb": "retry", "ids": [one] * 10_001}).status_code == 422


def test_every_choice_of_a_filter_is_kept_as_it_was_meant(root: ApiClient) -> None:
    chosen = {
        "statuses": ["failed"], "name": ["a", "b"], "queue_name": ["mail"],
        "error_class": ["ValueError"], "lowest_priority": -3, "schedule": ["s"],
        "enqueued_after": "2026-01-01T00:00:00Z", "metadata": {"shop.id": ["7"]},
    }  # fmt: skip
    answer = root.act("operations/", {"verb": "delete", "filter": chosen})
    assert answer.status_code == 202, answer.content
    stored = which_of(Operation.objects.get()).to_json()
    assert {**stored, "enqueued_after": chosen["enqueued_after"]} == chosen


def test_arguments_of_unknown_definitions_are_searched_by_those_who_may_view_them(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    make_task("gone", status="failed", args=["bob", "hunter2"])
    make_task(log_in.name, status="failed", args=["bob", "hunter2"])
    body = {"verb": "retry", "filter": {"arguments": {"1": ["hunter2"]}}, "dry_run": True}
    client = member("view_task", "operate")
    for how in (body, {**body, "filter": None, "q": "args.1:hunter2"}):
        given = {name: value for name, value in how.items() if value is not None}
        assert client.act("operations/", given).json()["doable"] == 0
        assert root.act("operations/", given).json()["doable"] == 1  # The unknown one alone.


@pytest.mark.parametrize("how", [{"q": "worker:w1"}, {"filter": {"worker": ["w1"]}}])
def test_who_may_not_view_leases_does_not_choose_by_worker(
    how: dict[str, Any], member: Callable[..., ApiClient]
) -> None:
    asked = {"verb": "retry", "dry_run": True, **how}
    operator = member("view_task", "operate")
    assert operator.act("operations/", asked).status_code == 403
    operator = member("view_task", "operate", "view_lease")
    assert operator.act("operations/", asked).status_code == 200


def test_to_cancel_leaves_out_what_runs_for_those_who_may_not_stop(
    member: Callable[..., ApiClient],
) -> None:
    make_task(add.name, status="ready")
    make_task(add.name, status="running")
    body = {"verb": "cancel", "everything": True}
    client = member("view_task", "operate")
    dry = client.act("operations/", {**body, "dry_run": True}).json()
    assert (dry["doable"], dry["leaves_out_running"]) == (1, True)
    client.act("operations/", body)
    which = which_of(Operation.objects.get())
    found = which.tasks(project_connection())
    assert [task.status for task in found] == ["ready"]
    may_stop = member("view_task", "operate", "stop")
    assert may_stop.act("operations/", {**body, "dry_run": True}).json()["doable"] == 2


@pytest.mark.parametrize(
    ("verb", "needed"),
    [("delete", ["purge"]), ("duplicate", ["operate", "enqueue"]), ("stop", ["stop"])],
)
def test_a_verb_asks_for_its_own_permission(
    verb: str, needed: list[str], member: Callable[..., ApiClient]
) -> None:
    body = {"verb": verb, "everything": True, "dry_run": True}
    others = {"operate", "enqueue", "stop", "purge"} - {needed[-1]}
    assert member("view_task", *others).act("operations/", body).status_code == 403
    assert member("view_task", *needed).act("operations/", body).status_code == 200


def test_to_call_one_off_takes_the_permission_of_its_verb(
    member: Callable[..., ApiClient],
) -> None:
    begun = Operation.objects.create(verb="delete")
    path = f"operations/{begun.id}/cancel/"
    assert member("view_operation", "operate").act(path).status_code == 403
    assert member("view_operation", "purge").act(path).status_code == 200


def test_they_are_listed_by_pages_the_newest_first(root: ApiClient) -> None:
    made = [Operation.objects.create(verb="retry") for _ in range(3)]
    first = root.look("operations/?limit=2").json()
    assert [each["id"] for each in first["results"]] == [str(made[2].id), str(made[1].id)]
    second = root.look(first["next"].partition("/api/v1/")[2]).json()
    assert ([each["id"] for each in second["results"]], second["next"]) == ([str(made[0].id)], None)
    for wrong in ("cursor=x", "limit=0", "limit=201", "limit=2&limit=3", "page=2"):
        assert root.look(f"operations/?{wrong}").status_code == 400, wrong


@pytest.mark.parametrize("name", ["x", "01a20221-6865-776c-bd4f-50f400b1c364", "{}"])
def test_one_that_is_not_there_is_not_found(root: ApiClient, name: str) -> None:
    for answer in (root.look(f"operations/{name}/"), root.act(f"operations/{name}/cancel/")):
        assert (answer.status_code, answer.json()["code"]) == (404, "operation_not_found")


def test_sent_again_it_is_begun_once(root: ApiClient) -> None:
    first = root.act("operations/", EVERYTHING, idempotency_key="k")
    again = root.act("operations/", EVERYTHING, idempotency_key="k")
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    assert again["Location"] == first["Location"]
    assert Operation.objects.count() == 1
    assert not Task.objects.exists()


def test_an_operation_begins_after_its_delay_and_is_undone_until_then(root: ApiClient) -> None:
    make_task(add.name, status="failed")
    told = root.act("operations/", {**EVERYTHING, "delay": 30}).json()
    assert told["starts_at"] > told["created_at"]
    undone = root.act(f"operations/{told['id']}/cancel/").json()
    assert (undone["status"], undone["started_at"], undone["done"]) == ("cancelled", None, 0)
    for delay in (-1, 3601, "soon"):
        assert root.act("operations/", {**EVERYTHING, "delay": delay}).status_code == 422
