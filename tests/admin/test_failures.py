"""Failures are shown in groups, each with the actions that the user may apply to all of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from taskqueue.models import Lease, Task
from taskqueue.monitoring.searching.search_tokens import search_text
from tests.admin.conftest import LogIn
from tests.admin.markup import Markup
from tests.admin.rows import EVIL, SECRET

pytestmark = pytest.mark.django_db
PAGE = "/admin/taskqueue/failure/"
MOST_QUERIES = 15


def fail(name: str, error: str = "shop.errors.Down", message: str = "no", count: int = 1) -> Task:
    """So many tasks of a name that failed with an error; the last of them."""
    for _ in range(count):
        task = Task.objects.create(
            name=name, status="failed", error_class=error, error_message=message,
            finished_at=timezone.now(), crash_delay=timedelta(seconds=1), args=[SECRET],
        )  # fmt: skip
    return task


def retry_later(name: str, error: str = "shop.errors.Slow", message: str = "late") -> Task:
    """One that failed and waits for its next attempt."""
    now = timezone.now()
    task = Task.objects.create(
        name=name, status="retrying", attempt=1, run_after=now, crash_delay=timedelta(seconds=1)
    )
    Lease.objects.create(
        task=task, worker_id="w", attempt=1, status="failed", claimed_at=now, finished_at=now,
        expires_at=now, error_class=error, error_message=message,
    )  # fmt: skip
    return task


def groups(client: Client, which: str = "failed") -> list[Any]:
    """The groups of the page."""
    answer = client.get(PAGE)
    assert answer.status_code == 200
    return list(answer.context[which].groups)


def links(client: Client, group: Any) -> dict[str, str]:
    """The addresses that the page has for a group, by their verbs; without one, its tasks."""
    found = {}
    for url in Markup(client.get(PAGE).content.decode()).links:
        query = parse_qs(urlsplit(url).query)
        if query.get("q") == [group.q]:
            found[query.get("verb", [""])[0]] = url
    return found


def verbs(client: Client, group: Any) -> set[str]:
    """The verbs that the page offers for a group."""
    return links(client, group).keys() - {""}


def asked(url: str) -> str:
    """What a link searches for."""
    return parse_qs(urlsplit(url).query).get("q", [""])[0]


def test_failed_tasks_stand_by_error_and_name_the_most_first(log_in_as: LogIn) -> None:
    fail("shop.tasks.send")
    newest = fail("shop.tasks.bill", message="out of\n paper", count=3)
    fail("shop.tasks.bill", error="shop.errors.Late", count=2)
    client = log_in_as("viewer", "view_task")
    assert [(group.error_class, group.name, group.count) for group in groups(client)] == [
        ("shop.errors.Down", "shop.tasks.bill", 3),
        ("shop.errors.Late", "shop.tasks.bill", 2),
        ("shop.errors.Down", "shop.tasks.send", 1),
    ]
    assert groups(client)[0].example_id == newest.id
    page = client.get(PAGE).content.decode()
    assert f'/task/{newest.id}/change/">out of paper</a>' in page


def test_a_group_links_to_its_tasks_by_a_search(log_in_as: LogIn) -> None:
    fail("shop.tasks.send")
    client = log_in_as("superuser")
    [group] = groups(client)
    text = "status:failed class:shop.errors.Down name:shop.tasks.send"
    assert asked(links(client, group)[""]) == text


ERRORS = ("socket.gaierror", "struct.error", "shop.tasks.send.<locals>.Down", 'a."b\\', "")
NAMES = ("shop.tasks.send", 'shop."tasks"\\send', "shop.tasks.*", "a, b:c")


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", NAMES)
def test_a_failure_group_links_to_and_acts_on_its_own_tasks_only(
    error: str, name: str, log_in_as: LogIn
) -> None:
    fail(name, error=error, count=2)
    fail(name, error="shop.errors.Other", message=f"because of {error}")
    fail(name, error=f"shop.{error}x")
    fail(name, error=f"shop.{error or 'Any'}")
    fail(f"shop.{name}", error=error)
    client = log_in_as("superuser")
    group = next(each for each in groups(client) if each.count == 2)
    found = links(client, group)
    assert client.get(found.pop("")).context["cl"].result_count == 2
    assert {"retry", "delete"} == found.keys()
    for verb, url in found.items():
        assert client.get(url).context["doable"].value == 2, verb


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", NAMES)
def test_the_dashboard_links_to_just_the_group(error: str, name: str, log_in_as: LogIn) -> None:
    fail(name, error=error, count=2)
    fail(name, error="shop.errors.Other", message=f"because of {error}")
    fail(name, error=f"shop.{error or 'Any'}")
    page = log_in_as("superuser")
    found = Markup(page.get("/admin/taskqueue/dashboard/").content.decode()).links
    [url] = [url for url in found if f"{search_text(**{'class': error})} " in asked(url)]
    assert page.get(url).context["cl"].result_count == 2


def test_retrying_tasks_are_grouped_by_name_with_their_last_error(log_in_as: LogIn) -> None:
    retry_later("shop.tasks.send")
    newest = retry_later("shop.tasks.send", message="later still")
    retry_later("shop.tasks.bill")
    client = log_in_as("viewer", "view_task", "view_lease")
    found = groups(client, "retrying")
    assert [(group.name, group.count) for group in found] == [
        ("shop.tasks.send", 2),
        ("shop.tasks.bill", 1),
    ]
    page = client.get(PAGE).content.decode().replace("<wbr>", "")
    assert found[0].example_id == newest.id
    assert f'/task/{newest.id}/change/">later still</a>' in page
    assert "shop.errors.Slow" in page


def test_the_error_of_an_attempt_is_for_those_who_may_view_attempts(log_in_as: LogIn) -> None:
    task = retry_later("shop.tasks.send", message="the lease's own")
    client = log_in_as("viewer", "view_task")
    page = client.get(PAGE).content.decode().replace("<wbr>", "")
    assert f'/task/{task.id}/change/">{task.id}</a>' in page
    assert "the lease's own" not in page
    assert "shop.errors.Slow" not in page


def test_acts_on_a_group_are_for_those_who_may(log_in_as: LogIn) -> None:
    try:
        start = reverse("admin:taskqueue_operation_start")
    except NoReverseMatch:
        pytest.skip("there are no operations in the admin")
    fail("shop.tasks.send")
    retry_later("shop.tasks.send")
    client = log_in_as("viewer", "view_task", "operate")
    [group] = groups(client)
    assert verbs(client, group) == {"retry"}
    assert links(client, group)["retry"].startswith(start)
    [group] = groups(client, "retrying")
    assert verbs(client, group) == {"run_now", "cancel"}


def test_who_may_delete_is_offered_it_and_who_may_only_look_nothing(log_in_as: LogIn) -> None:
    fail("shop.tasks.send")
    retry_later("shop.tasks.send")
    client = log_in_as("viewer", "view_task")
    assert [verbs(client, group) for group in groups(client)] == [set()]
    assert [verbs(client, group) for group in groups(client, "retrying")] == [set()]
    assert "operation" not in client.get(PAGE).content.decode().partition('id="content"')[2]


@pytest.mark.parametrize(
    ("role", "status"),
    [("anonymous", 302), ("user", 302), ("staff", 403), ("viewer", 200), ("superuser", 200)],
)
def test_the_page_is_for_those_who_may_view_tasks(role: str, status: int, log_in_as: LogIn) -> None:
    client = log_in_as(role)
    assert client.get(PAGE).status_code == status
    assert client.post(PAGE, {"action": "delete_selected"}).status_code == (
        405 if status == 200 else status
    )


def test_a_permission_to_view_something_else_shows_no_failures(log_in_as: LogIn) -> None:
    assert log_in_as("viewer", "view_lease", "view_rollup").get(PAGE).status_code == 403


def test_its_rows_have_no_pages_of_their_own_which_would_show_all_columns(
    log_in_as: LogIn,
) -> None:
    task = fail("shop.tasks.send")
    client = log_in_as("superuser")
    for rest in (f"{task.id}/change/", f"{task.id}/delete/", f"{task.id}/history/", "add/"):
        assert client.get(PAGE + rest).status_code == 404, rest


def test_no_text_of_a_task_is_markup_and_no_argument_is_shown(log_in_as: LogIn) -> None:
    fail(EVIL, error=EVIL, message=EVIL)
    retry_later(EVIL, error=EVIL, message=EVIL)
    page = log_in_as("superuser").get(PAGE).content.decode()
    assert EVIL not in page
    assert "&lt;script&gt;alert(" in page
    assert SECRET not in page


def test_the_page_without_failures_says_so(log_in_as: LogIn) -> None:
    page = log_in_as("superuser").get(PAGE).content.decode()
    assert "No failed tasks." in page
    assert "No tasks are waiting for a retry" in page


def test_the_page_costs_few_queries(log_in_as: LogIn, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        fail(f"shop.tasks.t{number}")
        retry_later(f"shop.tasks.t{number}")
    client = log_in_as("viewer", "view_task", "operate", "purge")
    with django_assert_max_num_queries(MOST_QUERIES):
        assert len(groups(client)) == 30


def test_failures_of_a_window_are_shown_and_acted_on_alone(log_in_as: LogIn) -> None:
    Task.objects.filter(pk=fail("shop.tasks.send").pk).update(
        finished_at=timezone.now() - timedelta(hours=3)
    )
    newest = fail("shop.tasks.send")
    client = log_in_as("superuser")
    [group] = client.get(PAGE, {"since": "1h"}).context["failed"].groups
    assert (group.count, group.example_id) == (1, newest.id)
    page = Markup(client.get(PAGE, {"since": "1h"}).content.decode())
    [retry] = [url for url in page.links if "verb=retry" in url]
    assert client.get(retry).context["doable"].value == 1
    [group] = groups(client)
    assert group.count == 2


def test_a_window_that_is_no_time_is_told_and_everything_shown(log_in_as: LogIn) -> None:
    fail("shop.tasks.send")
    answer = log_in_as("viewer", "view_task").get(PAGE, {"since": "noonish"})
    assert "“noonish” is not a time" in answer.content.decode()
    assert len(answer.context["failed"].groups) == 1
