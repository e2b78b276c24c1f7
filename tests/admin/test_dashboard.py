"""The dashboard shows the overall state to users who may view it, with buttons to act."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taskqueue import Every, schedules
from taskqueue.models import Lease, Queue, Rollup, Schedule, Task, Worker, Workflow
from tests.admin.conftest import LogIn
from tests.admin.rows import Rows
from tests.sample.tasks import add

URL = "/admin/taskqueue/dashboard/"
CARDS = {
    "view_rollup": "charts",
    "view_queue": "queues",
    "view_worker": "workers",
    "view_lease": "running",
    "view_schedule": "schedules",
    "view_workflow": "workflows",
}
"""By the permission that shows it."""


def read(client: Client, **given: str) -> str:
    response = client.get(URL, given)
    assert response.status_code == 200
    return response.content.decode().replace("<wbr>", "")


def region(page: str, name: str) -> str:
    """What stands in one region of the page; empty where it has none."""
    found = re.split(r'data-refresh="([\w-]+)"', page)
    return dict(zip(found[1::2], found[2::2], strict=True)).get(f"taskqueue-{name}", "")


def words(html: str) -> str:
    """The text alone, with single blanks."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.fixture
def worker(db: None) -> Worker:
    """One that lives, and takes from all queues."""
    return make_worker("worker-1")


def make_worker(name: str, **fields: Any) -> Worker:
    now = timezone.now()
    given = {
        "host": "host-1", "pid": 4711, "started_at": now, "seen_at": now, "concurrency": 8,
        "versions": {"taskqueue": "0.1.0"}, "memory_bytes": 52_428_800, "lease_seconds": 3600,
    }  # fmt: skip
    return Worker.objects.create(name=name, **{**given, **fields})


def make_running(worker: Worker, name: str = "shop.tasks.send", **fields: Any) -> Task:
    now = timezone.now()
    task = Task.objects.create(
        name=name, status="running", attempt=1, crash_delay=timedelta(seconds=1)
    )
    given = {
        "attempt": 1, "status": "running", "claimed_at": now, "started_at": now,
        "expires_at": now + timedelta(hours=1),
    }  # fmt: skip
    Lease.objects.create(task=task, worker=worker, **{**given, **fields})
    return task


# Who may see it


@pytest.mark.parametrize(
    ("role", "status"),
    [("anonymous", 302), ("user", 302), ("staff", 403), ("viewer", 200), ("superuser", 200)],
)
def test_the_dashboard_is_for_those_who_may_view_tasks(
    role: str, status: int, log_in_as: LogIn
) -> None:
    response = log_in_as(role).get(URL)
    assert response.status_code == status
    if status == 302:
        assert "/login/" in response.headers["Location"]


def test_other_permissions_do_not_open_it(log_in_as: LogIn) -> None:
    assert log_in_as("viewer", *CARDS, "operate", "stop").get(URL).status_code == 403


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_it_can_only_be_read(method: str, log_in_as: LogIn) -> None:
    assert getattr(log_in_as("superuser"), method)(URL).status_code == 405


@pytest.mark.parametrize("path", ["add/", "1/change/", "1/delete/", "1/history/"])
def test_rows_of_what_it_sums_up_have_no_pages(path: str, log_in_as: LogIn) -> None:
    assert log_in_as("superuser").get(URL + path).status_code == 404


def test_each_card_asks_for_the_permission_to_view_what_it_shows(
    rows: Rows, log_in_as: LogIn
) -> None:
    page = read(log_in_as("viewer", "view_task"))
    for name in CARDS.values():
        assert not region(page, name), name
    assert region(page, "counts")
    assert "worker-1" not in page


@pytest.mark.parametrize(("permission", "name"), CARDS.items())
def test_the_permission_to_view_one_shows_no_other_card(
    permission: str, name: str, rows: Rows, log_in_as: LogIn
) -> None:
    page = read(log_in_as("viewer", "view_task", permission))
    for other in CARDS.values():
        assert bool(region(page, other)) == (other == name), other


# What it shows


def test_counts_lead_to_the_tasks_of_that_status(rows: Rows, log_in_as: LogIn) -> None:
    add.enqueue(1)
    counts = region(read(log_in_as("viewer")), "counts")
    assert "0 blocked 0 scheduled 1 ready 0 running" in words(counts)
    assert "0 failed 1 cancelled" in words(counts)
    for status in ("ready", "failed", "cancelled"):
        assert f'href="{reverse("admin:taskqueue_task_changelist")}?status={status}"' in counts


def test_idle_workers_are_distinguished_from_dead_ones(log_in_as: LogIn) -> None:
    client = log_in_as("viewer")
    assert "No workers running" in words(region(read(client), "state"))
    worker = make_worker("worker-1")
    assert "Idle 1 worker running, 0 of 8 slots busy." in words(region(read(client), "state"))
    make_running(worker)
    assert "Working 1 worker running, 1 of 8 slots busy." in words(region(read(client), "state"))
    Worker.objects.update(status="quiet")
    assert "No worker takes tasks" in words(region(read(client), "state"))
    Worker.objects.update(seen_at=timezone.now() - timedelta(hours=2))
    assert "No workers running" in words(region(read(client), "state"))


def test_charts_show_what_the_rollups_say_for_the_span_of_the_address(
    log_in_as: LogIn, worker: Worker
) -> None:
    now = timezone.now()
    for ago, count in ((timedelta(minutes=5), 3), (timedelta(hours=7), 40)):
        Rollup.objects.create(
            resolution=60, starts_at=(now - ago).replace(second=0, microsecond=0), name="a",
            queue_name="default", succeeded=count, failed=1, run_times={"0": count},
        )  # fmt: skip
    client = log_in_as("viewer")
    assert "succeeded: 3, failed: 1" in region(read(client), "charts")
    assert "succeeded: 43, failed: 2" in region(read(client, span="day"), "charts")
    assert "succeeded: 3, failed: 1" in region(read(client, span="<year>"), "charts")
    assert 'href="?span=week"' in region(read(client), "charts")


def test_a_queue_tells_what_waits_who_runs_and_why_it_is_paused(
    log_in_as: LogIn, worker: Worker
) -> None:
    now = timezone.now()
    Queue.objects.create(name="default", paused_at=now, paused_by="ann", pause_reason="a deploy")
    add.enqueue(1)
    shown = words(region(read(log_in_as("viewer")), "queues"))
    line = r"default paused since [\d:]+ by ann: a deploy 1 (under 10|\d+) s 0 of 8"
    assert re.search(line, shown)


def test_a_worker_tells_where_it_is_and_how_it_does(log_in_as: LogIn, worker: Worker) -> None:
    make_running(worker)
    make_worker("gone", status="stopped")
    shown = words(region(read(log_in_as("viewer")), "workers"))
    line = "worker-1 host-1, process 4711 version 0.1.0 active all 1 of 8"
    assert re.search(rf"{re.escape(line)} (under 10|\d+) s ago 50\.0", shown)
    assert "gone" not in shown


def test_running_attempts_link_to_their_task_and_worker(log_in_as: LogIn, worker: Worker) -> None:
    task = make_running(worker, progress=42.4, progress_message="row 3", wedged_at=timezone.now())
    shown = region(read(log_in_as("viewer")), "running")
    assert reverse("admin:taskqueue_task_change", args=[task.pk]) in shown
    assert reverse("admin:taskqueue_worker_change", args=[worker.pk]) in shown
    assert 'max="100" value="42"' in shown
    assert "seems wedged" in shown
    assert "42 % row 3" in words(shown)


def test_the_next_schedules_are_shown_in_words(log_in_as: LogIn, worker: Worker) -> None:
    for name, minutes in (("later", 10), ("sooner", 5), ("paused", 1)):
        rule = Every(timedelta(minutes=minutes))
        schedules.create(name, task=add, args=[1], rule=rule)
        soon = timezone.now() + timedelta(minutes=minutes)
        Schedule.objects.filter(name=name).update(next_at=soon)
    schedules.pause("paused")
    client = log_in_as("viewer")
    page = region(read(client), "schedules")
    shown = words(page)
    assert shown.index("sooner") < shown.index("Every 5 minutes") < shown.index("later")
    assert "Every minute" not in shown
    assert "1 schedule is paused" in shown
    assert f"{reverse('admin:taskqueue_schedule_changelist')}?state=paused" in page
    schedules.pause("sooner")
    schedules.pause("later")
    shown = words(region(read(client), "schedules"))
    assert "No upcoming runs. 3 schedules are paused" in shown


def test_workflows_lead_to_those_that_run_failed_or_stand_still(log_in_as: LogIn) -> None:
    now = timezone.now()
    still = Workflow.objects.create(
        name="shop.nightly", format=1, moved_at=now - timedelta(hours=2), trouble="it is odd"
    )
    Workflow.objects.create(name="hourly", status="failed", format=1, finished_at=now)
    client = log_in_as("viewer")
    page = region(read(client), "workflows")
    shown = words(page)
    assert "running 1 failed 1 in the last hour, 1 in the last day" in shown
    assert "shop.nightly no step ended for 2 h it is odd" in shown
    for status in ("running", "failed"):
        url = f"{reverse('admin:taskqueue_workflow_changelist')}?status__exact={status}"
        assert f'href="{url}"' in page
        assert client.get(url).status_code == 200
    assert reverse("admin:taskqueue_workflow_change", args=[still.pk]) in page


def test_the_latest_failures_are_grouped_by_error(log_in_as: LogIn, worker: Worker) -> None:
    for number in range(3):
        Task.objects.create(
            name="shop.tasks.send", status="failed", attempt=1, finished_at=timezone.now(),
            error_class="builtins.ValueError", error_message=f"no such order: {number}",
            crash_delay=timedelta(seconds=1),
        )  # fmt: skip
    client = log_in_as("viewer")
    shown = region(read(client), "failures")
    assert "builtins.ValueError 3 tasks no such order: 2 shop.tasks.send" in words(shown)
    assert reverse("admin:taskqueue_failure_changelist") in shown
    [found] = re.findall(r'href="([^"]*\?q=[^"]*)"', shown)
    assert str(client.get(unescape(found)).context["matching"]) == "3"


def test_where_there_is_nothing_sentences_say_so(log_in_as: LogIn) -> None:
    page = words(read(log_in_as("viewer")))
    for sentence in (
        "No attempts finished in this period.", "Nothing ran in this period.",
        "Nothing is running.", "No queues yet.", "No task has failed.", "No upcoming runs.",
        "No workers are running. Start one with manage.py runworker.",
        "No workers are running. Queued tasks wait until you start one with",
    ):  # fmt: skip
        assert sentence in page
