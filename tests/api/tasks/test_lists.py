"""The list of tasks: what it is filtered by, its pages, what its rows hold."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Task
from tests.admin.rows import SECRET, fail_many, make_rows
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.engine.steps import HOUR, claim_one, end
from tests.sample.tasks import echo, fail, log_in, noop

pytestmark = pytest.mark.django_db


def listed(client: ApiClient, **query: Any) -> list[dict[str, Any]]:
    """The rows of the first page."""
    answer = client.look(f"tasks/?{urlencode(query)}")
    assert answer.status_code == 200, answer.content
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def names(client: ApiClient, **query: Any) -> set[str]:
    """What the tasks of the first page are called, by their unique keys."""
    return {each["unique_key"] for each in listed(client, **query)}


@pytest.fixture
def some(db: None) -> None:
    """Tasks that differ in all that they are found by."""
    end_of = fail.using(unique_key="failed", queue_name="mail").enqueue("no")
    claimed = claim_one(queue="mail", worker="w1")
    end(claimed, OutcomeKind.FAILED, error_class="builtins.ValueError", error_message="it broke")
    assert str(end_of.id) == claimed.task_id
    echo.using(unique_key="urgent", priority=9).enqueue({"user": {"id": 42}})
    echo.using(unique_key="later", run_after=HOUR).enqueue()
    log_in.using(unique_key="secret").enqueue("ann", SECRET)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"failed", "urgent", "later", "secret"}),
        ({"q": "status:failed name:tests.*"}, {"failed"}),
        ({"q": "args.0.user.id:42"}, {"urgent"}),
        ({"status": "scheduled,failed"}, {"later", "failed"}),
        ({"name": f"{fail.name},{log_in.name}"}, {"failed", "secret"}),
        ({"name": "tests.sample.tasks.e*"}, {"urgent", "later"}),
        ({"queue_name": "mail"}, {"failed"}),
        ({"worker": "w1"}, {"failed"}),
        ({"error": "ValueError"}, {"failed"}),
        ({"key": "later,urgent"}, {"later", "urgent"}),
        ({"priority": ">5"}, {"urgent"}),
        ({"schedule": "none such"}, set()),
        ({"enqueued_after": "2001-01-01T00:00:00Z", "status": "ready"}, {"urgent", "secret"}),
        ({"enqueued_before": "2001-01-01T00:00:00+01:00"}, set()),
        ({"q": "status:ready", "priority": "9"}, {"urgent"}),
        ({"q": f"args.password:{SECRET.split()[0]}"}, set()),
    ],
)
def test_tasks_are_found_by_what_the_admin_finds_them_by(
    query: dict[str, str], found: set[str], some: None, root: ApiClient
) -> None:
    assert names(root, **query) == found


@pytest.mark.parametrize("query", [{"worker": "w1"}, {"q": "worker:w1"}, {"worker": "no such"}])
def test_who_may_not_view_leases_does_not_find_by_them(
    query: dict[str, str], some: None, member: Any
) -> None:
    answer = member("view_task").look(f"tasks/?{urlencode(query)}")
    problem(answer, 403, "permission_denied")
    assert member("view_task", "view_lease").look(f"tasks/?{urlencode(query)}").status_code == 200


def test_an_id_finds_its_task(some: None, root: ApiClient) -> None:
    task = Task.objects.get(unique_key="later")
    assert names(root, id=task.id) == names(root, q=str(task.id)) == {"later"}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"statuz": "failed"}, "statuz"),
        ({"status": "faild"}, "status"),
        ({"status": ""}, "status"),
        ({"status": ","}, "status"),
        ({"q": "statuz:failed"}, "q"),
        ({"q": "status:failed", "status": "ready"}, "status"),
        ({"q": "a\x00b"}, "q"),
        ({"id": "12"}, "id"),
        ({"priority": "high"}, "priority"),
        ({"enqueued_after": "2026-11-01T14:30"}, "enqueued_after"),
        ({"enqueued_after": "9999-12-31T23:59:59-01:00"}, "enqueued_after"),
        ({"limit": "0"}, "limit"),
        ({"limit": "201"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"limit": "51", "include": "arguments"}, "limit"),
        ({"include": "everything"}, "include"),
        ({"order": "priority"}, "order"),
        ({"before": "nonsense"}, "before"),
        ({"before": ""}, "before"),
        ({"after": "i.00"}, "after"),
        ({"name": "x" * 2001}, "name"),
        ({"name": ",".join("x" * 101)}, "name"),
    ],
)
def test_an_invalid_parameter_is_reported_by_its_name(
    query: dict[str, str], name: str, root: ApiClient
) -> None:
    told = problem(root.look(f"tasks/?{urlencode(query)}"), 400, "invalid")
    assert [each["pointer"] for each in told["errors"]] == [f"/{name}"]


def test_a_parameter_that_stands_twice_is_refused(root: ApiClient) -> None:
    problem(root.look("tasks/?status=ready&status=failed"), 400, "invalid")


@pytest.mark.parametrize(
    "query",
    [
        {}, {"status": "failed"}, {"name": "shop.tasks.gone"}, {"ordering": "created"},
        {"ordering": "-created"}, {"ordering": "finished"}, {"ordering": "-priority"},
        {"ordering": "run_time"},
    ],
)  # fmt: skip
def test_pages_lead_on_and_back(query: dict[str, str], root: ApiClient) -> None:
    fail_many(7)
    seen, answer = [], root.look(f"tasks/?{urlencode({**query, 'limit': 3})}").json()
    assert answer["previous"] is None
    pages = [answer]
    while pages[-1]["next"]:
        pages.append(root.get(pages[-1]["next"]).json())
    seen = [each["id"] for page in pages for each in page["results"]]
    assert [len(page["results"]) for page in pages] == [3, 3, 1]
    assert len(set(seen)) == 7
    back = root.get(pages[1]["previous"]).json()
    assert [each["id"] for each in back["results"]] == seen[:3]


def test_rows_are_lean_and_hold_redacted_arguments_where_these_are_asked_for(
    some: None, root: ApiClient
) -> None:
    (row,) = listed(root, key="secret")
    assert "args" not in row
    assert SECRET not in str(row)
    (row,) = listed(root, key="secret", include="arguments")
    assert (row["args"], row["kwargs"]) == (["ann", "[redacted]"], {})


def test_arguments_of_an_unknown_definition_are_for_who_may_view_any(member: Any) -> None:
    fail_many(1)
    viewer = member("view_task")
    (row,) = listed(viewer, include="arguments")
    assert (row["args"], row["kwargs"]) == (None, None)
    assert listed(viewer, q="args.0:0") == []
    privileged = member("view_task", "view_arguments")
    (row,) = listed(privileged, include="arguments")
    assert (row["args"], row["kwargs"]) == ([0], {})
    assert len(listed(privileged, q="args.0:0")) == 1


def test_a_page_that_has_not_changed_is_not_sent_again(some: None, root: ApiClient) -> None:
    first = root.look("tasks/")
    assert root.look("tasks/", If_None_Match=first["ETag"]).status_code == 304
    echo.enqueue()
    assert root.look("tasks/", If_None_Match=first["ETag"]).status_code == 200


def test_a_page_costs_as_many_queries_for_many_rows_as_for_few(root: ApiClient) -> None:
    make_rows()
    counts = []
    for more in (2, 30):
        fail_many(more)
        for query in ("status=failed", "q=args.x:1", "name=shop.*&include=arguments&limit=50"):
            root.look(f"tasks/?{query}")
            with CaptureQueriesContext(
                connection,
            ) as asked:
                assert root.look(f"tasks/?{query}").status_code == 200
            counts.append(len(asked))
    assert counts[:3] == counts[3:]
    assert max(counts) <= 12


def test_times_are_in_utc(root: ApiClient) -> None:
    echo.enqueue()
    (row,) = listed(root)
    assert row["enqueued_at"].endswith("Z")
    assert timezone.now().isoformat()[:4] == row["enqueued_at"][:4]


def test_an_ordering_sorts_and_an_unknown_one_is_refused(root: ApiClient) -> None:
    for priority in (3, 9, 5):
        noop.using(priority=priority).enqueue()
    answer = root.look("tasks/?ordering=-priority").json()
    assert [each["priority"] for each in answer["results"]] == [9, 5, 3]
    assert answer["sorted_among"] is None
    problem(root.look("tasks/?ordering=args"), 400, "invalid")
