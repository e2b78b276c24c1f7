"""The task list: searches find matching tasks page by page, and odd input is refused politely."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from taskqueue.control import delete_queue
from taskqueue.models import Lease, Queue, Task
from taskqueue.monitoring.searching import finding
from taskqueue.monitoring.searching.finding import Effort
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET, Rows
from tests.monitoring.searching.rows import make_tasks
from tests.sample.tasks import add, log_in, noop

LIST = reverse("admin:taskqueue_task_changelist")
# Three of them tell why the tasks of the page wait.
MOST_QUERIES = 20
SHORT = re.compile(r"CASE WHEN \((?:pg_column_size|length)\(.{1,200}?\) <= \(?2000.{1,60}? END")


def get(client: Client, text: str = "", **more: str) -> Any:
    return client.get(LIST, {**({"q": text} if text else {}), **more})


def shown(response: HttpResponse) -> list[Any]:
    """The ids of the tasks on the page."""
    assert response.status_code == 200
    return [task.pk for task in response.context["cl"].result_list]  # type: ignore[attr-defined]


# Finding


@pytest.mark.parametrize(
    "text",
    [
        "add", "tests.sample.tasks.add", "name:tests.sample.*", "order:1", '"order:1"',
        "key:order:1", "queue:mail", "status:ready", "args.b:42", "args.0:1", "metadata.n:x",
        "priority:>6", "after:1h", "id:{id}", " {hex}  status:ready ",
    ],
)  # fmt: skip
def test_a_task_is_found_by(text: str, rows: Rows, log_in_as: LogIn) -> None:
    options = {"unique_key": "order:1", "queue_name": "mail", "metadata": {"n": "x"}, "priority": 7}
    wanted = add.using(**options).enqueue(1, 42)
    Task.objects.filter(pk=rows.task.pk).update(name="other.log_in", enqueued_at="2020-01-01T00Z")
    typed = text.format(id=wanted.id, hex=wanted.id.hex)
    response = get(log_in_as("viewer"), typed)
    if typed == "order:1":
        assert "quotation marks" in response.content.decode()
    else:
        assert shown(response) == [wanted.id]
        assert str(response.context["matching"]) == "1"


def test_pages_lead_on_and_back(log_in_as: LogIn) -> None:
    make_tasks(120)
    client = log_in_as("viewer")
    walked, address = [], LIST
    for _ in range(3):
        response = client.get(address)
        walked += shown(response)
        address = LIST + response.context["cl"].older_url
    assert address == LIST
    assert walked == list(Task.objects.order_by("-id").values_list("id", flat=True))
    back = client.get(LIST + response.context["cl"].newer_url)
    assert shown(back) == walked[50:100]
    assert shown(client.get(LIST + back.context["cl"].newer_url)) == walked[:50]


def test_a_page_says_how_far_it_has_looked_and_goes_on(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = make_tasks(60)
    Task.objects.filter(id=tasks[0].id).update(name="rare")
    monkeypatch.setattr(finding, "Effort", lambda: Effort(first=50, windows=1, seconds=60))
    client = log_in_as("viewer")
    response = get(client, "name:rare")
    page = response.content.decode()
    assert "searched back to" in page
    assert "Search further" in page
    assert "No matches so far" in page
    assert str(response.context["matching"]) == "0+"
    further = client.get(LIST + response.context["cl"].older_url)
    assert shown(further) == [tasks[0].id]
    assert "Search further" not in further.content.decode()


def test_tabs_lead_to_each_status_and_keep_the_search(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer")
    response = get(client, "queue:default")
    tabs = {str(tab.title): tab for tab in response.context["tabs"]}
    assert tabs["all"].is_current
    assert tabs["failed"].count is None
    cancelled = client.get(LIST + tabs["cancelled"].url)
    assert cancelled.context["search"] == "queue:default status:cancelled"
    assert shown(cancelled) == [rows.task.pk]
    counted = {str(tab.title): str(tab.count) for tab in get(client).context["tabs"]}
    assert counted["all"] == counted["cancelled"] == "1"
    assert counted["failed"] == "0"


def test_queues_are_links_where_there_are_several(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer")
    assert get(client).context["queues"] == []
    Queue.objects.create(name="mail")
    wanted = add.using(queue_name="mail").enqueue(1)
    links = {str(link.title): link for link in get(client).context["queues"]}
    assert shown(client.get(LIST + links["mail"].url)) == [wanted.id]


def test_a_deleted_queue_is_no_link(rows: Rows, log_in_as: LogIn) -> None:
    for name in ("mail", "old"):
        Queue.objects.create(name=name)
    delete_queue("old")
    titles = {str(link.title) for link in get(log_in_as("viewer")).context["queues"]}
    assert "mail" in titles
    assert "old" not in titles


@pytest.mark.parametrize("name", ["status", "status__exact"])
def test_addresses_of_old_lead_to_the_search(name: str, rows: Rows, log_in_as: LogIn) -> None:
    response = log_in_as("viewer").get(
        LIST, {name: "cancelled", "queue_name": "default"}, follow=True
    )
    assert response.context["search"] == "status:cancelled queue:default"
    assert shown(response) == [rows.task.pk]


def test_an_id_opens_its_task(log_in_as: LogIn) -> None:
    task = noop.enqueue()
    client = log_in_as("viewer")
    for typed in (str(task.id), f" {task.id.hex} "):
        assert get(client, typed)["Location"] == reverse(
            "admin:taskqueue_task_change", args=[task.id]
        )
    assert shown(get(client, "0" * 32)) == []


def test_a_row_says_why_its_task_waits(log_in_as: LogIn) -> None:
    noop.enqueue()
    client = log_in_as("viewer")
    assert "No running worker serves the queue default." in get(client).content.decode()
    Queue.objects.filter(name="default").delete()
    Queue.objects.create(name="default", paused_at=timezone.now(), paused_by="ann")
    page = get(client).content.decode()
    assert "The queue default is paused, by ann." in page
    assert "queue is paused" in page


def test_qualifiers_and_their_known_values_are_suggested(log_in_as: LogIn) -> None:
    Queue.objects.create(name="mail")
    address = reverse("admin:taskqueue_task_suggest")
    known = log_in_as("viewer", "view_task").get(address).json()
    assert {"failed", "ready"} <= set(known["status"])
    assert known["queue"] == ["mail"]
    assert add.name in known["name"]
    assert known["worker"] == known["schedule"] == known["id"] == []


# Odd input


ODD = (
    "stauts:failed", "status:faild", 'name:"', "args:1", "id:1", "after:never", "a\x00b", "\ufffd",
    "x" * 5000, "é☃ 中", "%", "_", "'; DROP TABLE x --", "name:%", "((", "-status:ready", ":", "::",
    "args.a.0.b:1", "args.99999999999999999999:1", "metadata.0.0.0.0.0.0.0.0.0:1", "args.a:1e999",
    "args.a:99999999999999999999999", "before:9999-12-31T23:59:59", "after:0001-01-01", EVIL,
    f"queue:{EVIL}", "priority:-100..100", ",", "status:,ready", "worker:\"a'b\"", "key:''",
)  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_whatever_is_typed_gives_a_page(text: str, rows: Rows, log_in_as: LogIn) -> None:
    response = get(log_in_as("superuser"), text)
    assert response.status_code == 200
    assert EVIL not in response.content.decode()
    exported = log_in_as_nobody_new(response).get(
        reverse("admin:taskqueue_task_export"), {"q": text, "format": "jsonl"}
    )
    assert exported.status_code in (200, 400)


def log_in_as_nobody_new(response: Any) -> Client:
    """The client that had this answer."""
    client: Client = response.client
    return client


def test_a_mistake_is_reported_and_nothing_is_shown(rows: Rows, log_in_as: LogIn) -> None:
    response = get(log_in_as("viewer"), "stauts:failed")
    page = response.content.decode()
    assert "Did you mean “status:”?" in page
    assert 'aria-invalid="true"' in page
    assert 'value="stauts:failed"' in page
    assert shown(response) == []


@pytest.mark.parametrize("cursor", ["x", "\x00", "a" * 9999, "aS4w", "=", "é"])
def test_a_cursor_that_is_none_gives_the_first_page(
    cursor: str, rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("viewer")
    for name in ("before", "after"):
        assert shown(get(client, **{name: cursor})) == [rows.task.pk]


def test_names_are_shown_as_text(rows: Rows, log_in_as: LogIn) -> None:
    Task.objects.update(name=EVIL, queue_name=EVIL, error_class=f"a.{EVIL}", unique_key=EVIL)
    Queue.objects.create(name=EVIL)
    page = get(log_in_as("superuser")).content.decode()
    assert EVIL not in page
    assert page.count("&lt;script&gt;") >= 4


# Secrets


@pytest.mark.parametrize("role", ["viewer", "superuser"])
@pytest.mark.parametrize("path", ["password", "1"])
def test_nobody_learns_a_sensitive_argument_by_searching(
    role: str, path: str, rows: Rows, log_in_as: LogIn
) -> None:
    log_in.enqueue(user="bob", password=SECRET)
    client = log_in_as(role)
    assert shown(get(client, f'args.{path}:"{SECRET}"')) == []
    assert len(shown(get(client, "args.user:bob"))) == 1


def test_arguments_of_unknown_definitions_are_searched_by_few(rows: Rows, log_in_as: LogIn) -> None:
    Task.objects.filter(pk=rows.task.pk).update(name="shop.gone", kwargs={"pin": 42})
    client = log_in_as("viewer", "view_task")
    assert shown(get(client, "args.pin:42")) == []


def test_who_may_view_arguments_searches_them(rows: Rows, log_in_as: LogIn) -> None:
    Task.objects.filter(pk=rows.task.pk).update(name="shop.gone", kwargs={"pin": 42})
    client = log_in_as("viewer", "view_task", "view_arguments")
    assert shown(get(client, "args.pin:42")) == [rows.task.pk]


# Cost


SEARCHES = (
    "", "status:failed", "status:ready", "status:running", "status:ready,running,scheduled",
    "status:failed,succeeded,cancelled name:gone", "error:KeyError", "name:gone", "gone",
    "worker:w1", "schedule:none", "args.a:1", "after:1h queue:mail", "key:k3",
)  # fmt: skip


def test_a_page_costs_few_queries(log_in_as: LogIn) -> None:
    make_tasks(120)
    Queue.objects.create(name="mail")
    client = log_in_as("viewer")
    for text in SEARCHES:
        with CaptureQueriesContext(connection) as queries:
            response = get(client, text)
        assert response.status_code == 200
        assert len(queries) <= MOST_QUERIES, (text, [query["sql"] for query in queries])


def test_a_page_reads_no_large_column(log_in_as: LogIn) -> None:
    noop.enqueue()
    client = log_in_as("superuser")
    with CaptureQueriesContext(connection) as queries:
        get(client)
    asked = " ".join(query["sql"] for query in queries)
    # Arguments are read where they take few bytes.
    asked = SHORT.sub("", asked)
    for column in ("args", "kwargs", "return_value", "error_message", "metadata"):
        assert f'"{column}"' not in asked
    assert "OFFSET" not in asked


def test_the_time_of_the_last_run_leaves_out_the_pauses_between_attempts(
    log_in_as: LogIn,
) -> None:
    now = timezone.now()
    task = Task.objects.create(
        name="a", status="succeeded", attempt=2, started_at=now - timedelta(hours=1),
        finished_at=now, crash_delay=timedelta(0),
    )  # fmt: skip
    for attempt, (ago, seconds) in enumerate(((3600, 90), (7, 7)), start=1):
        begun = now - timedelta(seconds=ago)
        Lease.objects.create(
            task=task, attempt=attempt, worker_id="w", status="succeeded" if attempt == 2 else
            "failed", claimed_at=begun, started_at=begun, expires_at=now,
            finished_at=begun + timedelta(seconds=seconds),
        )  # fmt: skip
    page = get(log_in_as("viewer")).content.decode()
    assert re.search(r'data-label="Last run"[^>]*>7 s<', page)
