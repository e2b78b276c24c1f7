"""Which tasks an operation is about: bounded, told, and none that REST may not enqueue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskqueue.engine.connections import project_connection
from taskqueue.engine.operations.asking import which_of
from taskqueue.models import Operation
from tests.api.conftest import ApiClient
from tests.api.test_operations import make_task
from tests.sample.rest_tasks import order, tell
from tests.sample.tasks import add, greet

pytestmark = pytest.mark.django_db


def told(root: ApiClient, **body: Any) -> Any:
    """What the answer to that operation says."""
    answer = root.act("operations/", body)
    assert answer.status_code in (200, 202), answer.content
    return answer.json()


CHOICES: list[tuple[dict[str, Any], set[str]]] = [
    ({"everything": True}, {greet.name, tell.name, order.name}),
    ({"q": "status:failed"}, {greet.name, tell.name, order.name}),
    ({"filter": {"queue_name": ["default"]}}, {greet.name, tell.name, order.name}),
    ({"filter": {"name": [add.name, greet.name]}}, {greet.name}),
    ({"filter": {"name_prefix": ["tests.sample.tasks."]}}, {greet.name}),
    (
        {"filter": {"name_prefix": ["tests.sample.tasks."], "name": [tell.name]}},
        {greet.name, tell.name},
    ),
    ({"q": "name:tests.sample.rest_tasks.*"}, {tell.name, order.name}),
]


@pytest.mark.parametrize(("choice", "expected"), CHOICES)
def test_to_duplicate_leaves_out_what_may_not_be_enqueued(
    choice: dict[str, Any], expected: set[str], root: ApiClient
) -> None:
    for name in (add.name, greet.name, tell.name, order.name):
        make_task(name, status="failed")
    dry = told(root, verb="duplicate", dry_run=True, **choice)
    assert {each["name"] for each in dry["sample"]} == expected
    assert (dry["fitting"], dry["doable"]) == (len(expected), len(expected))
    begun = told(root, verb="duplicate", **choice)
    assert begun["expected"] == len(expected)
    which = which_of(Operation.objects.get())
    assert {each.name for each in which.tasks(project_connection())} == expected
    assert told(root, verb="retry", dry_run=True, **choice)["fitting"] >= len(expected)


def test_to_duplicate_by_ids_leaves_out_what_may_not_be_enqueued(root: ApiClient) -> None:
    made = [make_task(name, status="failed") for name in (add.name, greet.name)]
    ids = [str(each.id) for each in made]
    assert told(root, verb="duplicate", ids=ids)["expected"] == 1
    assert told(root, verb="duplicate", ids=ids, dry_run=True)["sample"][0]["id"] == ids[1]


@pytest.mark.parametrize("way", [{"q": f"name:{add.name}"}, {"filter": {"name": [add.name]}}])
@pytest.mark.parametrize("more", [{}, {"dry_run": True}])
def test_to_duplicate_nothing_but_what_may_not_be_enqueued_is_refused(
    way: dict[str, Any], more: dict[str, Any], root: ApiClient
) -> None:
    answer = root.act("operations/", {"verb": "duplicate", **way, **more})
    assert (answer.status_code, answer.json()["code"]) == (403, "task_not_exposed")
    assert not Operation.objects.exists()


def many(count: int, *, of: str = "v") -> list[str]:
    """So many texts."""
    return [f"{of}{number}" for number in range(count)]


TOO_MUCH: list[dict[str, Any]] = [
    {"arguments": {path: many(3) for path in many(100)}},
    {"arguments": {path: ["x"] for path in many(11)}, "metadata": {p: ["x"] for p in many(10)}},
    {"name": many(100), "words": many(100), "queue_name": ["x"]},
    {"arguments": {"a": many(100), "b": many(100), "c": many(1)}},
    {"worker": many(101)},
]


@pytest.mark.parametrize("which", TOO_MUCH)
def test_a_filter_of_too_much_is_refused(which: dict[str, Any], root: ApiClient) -> None:
    for more in ({}, {"dry_run": True}):
        answer = root.act("operations/", {"verb": "retry", "filter": which, **more})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.json()["errors"][0]["pointer"].startswith("/filter")


MUCH: list[dict[str, Any]] = [
    {"arguments": {f"{number}.1.1.1": many(9, of="1") for number in range(20)}},
    {"metadata": {"1.1.1": many(100, of="1"), "a": many(100, of="2")}},
    {"name": many(100), "words": many(100)},
]


@pytest.mark.parametrize("which", MUCH)
def test_a_filter_of_as_much_as_it_takes_is_answered(
    which: dict[str, Any], root: ApiClient
) -> None:
    make_task(add.name, status="failed")
    assert told(root, verb="retry", filter=which, dry_run=True)["fitting"] == 0


def test_it_tells_which_tasks_it_is_about(root: ApiClient) -> None:
    one = make_task(add.name, status="failed")
    plain = {"everything": False, "ids_count": None}
    ids = told(root, verb="retry", ids=[str(one.id)])
    assert ids["chosen"] == {**plain, "ids_count": 1, "filter": {}}
    everything = told(root, verb="retry", everything=True)
    assert everything["chosen"] == {**plain, "everything": True, "filter": {}}
    chosen = {"statuses": ["failed"], "name": ["a", "b"], "lowest_priority": 3}
    begun = told(root, verb="retry", filter=chosen)
    assert begun["chosen"] == {**plain, "filter": chosen}
    assert root.look(f"operations/{begun['id']}/").json() == begun
    Operation.objects.update(chosen={"which": {"of_tomorrow": 1}})
    assert root.look(f"operations/{begun['id']}/").json()["chosen"] is None


def test_values_of_arguments_are_told_to_those_who_may_view_them(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    which = {"arguments": {"user.name": ["bob", "ann"]}, "queue_name": ["mail"]}
    begun = told(root, verb="retry", filter=which)
    assert begun["chosen"]["filter"] == which
    path = f"operations/{begun['id']}/"
    seen = member("view_operation").look(path).json()["chosen"]["filter"]
    assert seen == {"arguments": {"user.name": ["[redacted]"]}, "queue_name": ["mail"]}
    may_view = member("view_operation", "view_arguments").look(path).json()
    assert may_view["chosen"]["filter"] == which


def test_a_search_tells_no_values_of_arguments_to_who_may_not_view_them(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    typed = 'ARGS.token:hunter2,"a b" status:failed'
    begun = told(root, verb="retry", q=typed)
    assert begun["query"] == typed
    hidden = "args.token:[redacted] status:failed"
    path = f"operations/{begun['id']}/"
    viewer = member("view_operation", "view_audit")
    answers = [viewer.look(each) for each in (path, "operations/", "audit/")]
    assert answers[0].json()["query"] == hidden
    assert answers[1].json()["results"][0]["query"] == hidden
    assert answers[2].json()["results"][0]["verb"] == "start"
    assert all("hunter2" not in each.content.decode() for each in answers)
    may_view = member("view_operation", "view_arguments")
    assert may_view.look(path).json()["query"] == typed
    own = member("view_task", "operate").act("operations/", {"verb": "retry", "q": typed})
    assert own.json()["query"] == hidden


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ({"q": "worker:w1 status:failed"}, "worker:[redacted] status:failed"),
        ({"filter": {"worker": ["w1"]}}, ""),
    ],
)
def test_the_name_of_a_worker_is_told_to_those_who_may_view_leases(
    typed: dict[str, Any], shown: str, root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    begun = told(root, verb="retry", **typed)
    path = f"operations/{begun['id']}/"
    viewer = member("view_operation", "view_arguments")
    seen = viewer.look(path).json()
    assert (seen["query"], seen["chosen"]["filter"]["worker"]) == (shown, ["[redacted]"])
    answers = [viewer.look(each).content.decode() for each in (path, "operations/")]
    assert not any("w1" in each for each in answers)
    whole = member("view_operation", "view_lease").look(path).json()
    assert (whole["query"], whole["chosen"]["filter"]["worker"]) == (typed.get("q", ""), ["w1"])


def test_who_has_seen_it_in_another_status_does_not_call_it_off(root: ApiClient) -> None:
    answer = root.act("operations/", {"verb": "retry", "everything": True})
    seen, path = answer["ETag"], answer["Location"].partition("/api/v1/")[2]
    assert root.look(path)["ETag"] == seen
    Operation.objects.update(status="running")
    refused = root.act(f"{path}cancel/", if_match=seen)
    assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    seen = root.look(path)["ETag"]
    Operation.objects.update(matched=5)  # How far it is does not count.
    assert root.act(f"{path}cancel/", if_match=seen).json()["status"] == "cancelled"
