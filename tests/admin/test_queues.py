"""The queues: all there are with their figures, and a page of each, also before it has a row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.utils import timezone

from taskqueue import control
from taskqueue.admin.links import Links
from taskqueue.engine.depths import record_depths
from taskqueue.models import Queue, Rollup, Worker
from taskqueue.monitoring.read_models.queue import ShownQueue
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.test_admin import read, url
from tests.admin.test_dashboard import words
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
LINKS = Links("admin")
LIST = "/admin/taskqueue/queue/"
MOST_QUERIES = 15


def hire(name: str, **values: Any) -> Worker:
    """A worker that lives."""
    now = timezone.now()
    return Worker.objects.create(
        **({"host": "host-1", "pid": 1, "started_at": now, "seen_at": now, "concurrency": 4}
           | {"name": name} | values)
    )  # fmt: skip


def queues(client: Client, **asked: str) -> dict[str, ShownQueue]:
    """The queues of the list, by name."""
    answer = client.get(LIST, asked)
    assert answer.status_code == 200
    return {queue.name: queue for queue in answer.context["queues"]}


def test_the_list_says_what_waits_and_who_serves(log_in_as: LogIn) -> None:
    noop.using(queue_name="mail").enqueue()
    Queue.objects.create(name="idle")
    hire("worker-1", queues={"idle": 1})
    client = log_in_as("viewer", "view_queue")
    found = queues(client)
    assert (str(found["mail"].waiting_count), found["mail"].slots) == ("1", 0)
    assert (str(found["idle"].waiting_count), found["idle"].slots) == ("0", 4)
    shown = words(read(client, LIST))
    assert "idle open 0 - 0 / 4" in shown
    assert "mail no worker 1" in shown


def test_the_list_says_who_paused_what_and_why(log_in_as: LogIn) -> None:
    control.pause("mail", until=timedelta(hours=1), by="ann", reason="the server moves")
    page = read(log_in_as("viewer", "view_queue"), LIST)
    for shown in ("taskqueue-badge--paused", "until", "by ann", "the server moves"):
        assert shown in page, shown


def test_the_search_finds_a_part_of_a_name(log_in_as: LogIn) -> None:
    for name in ("mail", "mail-slow", "default"):
        Queue.objects.create(name=name)
    client = log_in_as("viewer", "view_queue")
    assert list(queues(client, q=" mail ")) == ["mail", "mail-slow"]
    assert list(queues(client, q="\x00")) == []


def test_buttons_are_for_those_who_may_press_them(log_in_as: LogIn) -> None:
    control.pause("mail")
    Queue.objects.create(name="default")
    key = Queue.objects.get(name="mail").pk
    viewer = log_in_as("viewer", "view_queue")
    for address in (LIST, url("queue", "change", key)):
        assert "/act/" not in read(viewer, address)


def test_users_who_may_control_queues_can_pause_or_resume(log_in_as: LogIn) -> None:
    control.pause("mail")
    Queue.objects.create(name="default")
    page = read(log_in_as("viewer", "view_queue", "control_queues"), LIST)
    assert page.count('value="pause"') == page.count('value="resume"') == 1
    assert LINKS.url("queue_act", "mail") in page
    assert 'name="next" value="/admin/taskqueue/queue/"' in page


def test_a_page_shows_its_charts_its_workers_and_where_there_is_more(log_in_as: LogIn) -> None:
    queue = Queue.objects.create(name="mail")
    hire("worker-1")
    hire("worker-2", queues={"default": 1})
    Rollup.objects.create(
        queue_name="mail", name="shop.tasks.send", succeeded=3, run_times={"9": 3},
        wait_times={"9": 3}, starts_at=timezone.now() - timedelta(minutes=2),
    )  # fmt: skip
    page = read(log_in_as("viewer"), url("queue", "change", queue.pk))
    assert "worker-1" in page
    assert "worker-2" not in page
    assert "q=queue%3Amail" in page
    assert page.count("<svg") >= 3


def test_workers_and_tasks_are_shown_to_those_who_may_view_them(log_in_as: LogIn) -> None:
    queue = Queue.objects.create(name="mail")
    hire("worker-1")
    page = read(log_in_as("viewer", "view_queue"), url("queue", "change", queue.pk))
    assert "worker-1" not in page
    assert "Those that failed" not in page


def test_a_queue_without_a_row_has_a_page_by_its_name(log_in_as: LogIn) -> None:
    noop.using(queue_name="mail").enqueue()
    client = log_in_as("superuser")
    page = read(client, LINKS.queue_url("mail"))
    assert 'value="pause"' in page
    assert "has seen a task of this queue" in read(client, LINKS.queue_url("nobody"))
    Queue.objects.create(name="mail")
    assert "First seen" in read(client, f"{LINKS.queue_url('mail')}&span=week")


@pytest.mark.parametrize("asked", [{}, {"name": ""}, {"name": "a\x00b"}])
def test_a_name_that_no_queue_can_have_leads_to_the_list(
    asked: dict[str, str], log_in_as: LogIn
) -> None:
    answer = log_in_as("superuser").get("/admin/taskqueue/queue/named/", asked)
    assert (answer.status_code, answer["Location"]) == (302, LIST)


def test_a_hostile_name_or_reason_is_text(log_in_as: LogIn) -> None:
    queue = Queue.objects.create(name=EVIL)
    control.pause("mail", by=EVIL, reason=EVIL)
    hire(EVIL)
    client = log_in_as("superuser")
    for address in (
        LIST, url("queue", "change", queue.pk), LINKS.queue_url(EVIL), LINKS.queue_url("mail"),
        f"{LIST}?q={EVIL}",
    ):  # fmt: skip
        page = read(client, address)
        assert EVIL not in page, address
        assert "&lt;script&gt;alert(" in page, address


@pytest.mark.parametrize(
    ("role", "status"),
    [("anonymous", 302), ("user", 302), ("staff", 403), ("viewer", 200), ("superuser", 200)],
)
def test_the_page_by_name_is_for_those_who_may_view_queues(
    role: str, status: int, log_in_as: LogIn
) -> None:
    assert log_in_as(role).get(LINKS.queue_url("mail")).status_code == status


def test_the_pages_cost_few_queries(log_in_as: LogIn, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        queue = Queue.objects.create(name=f"queue-{number}")
        noop.using(queue_name=queue.name).enqueue()
        hire(f"worker-{number}")
    client = log_in_as("viewer")
    for address in (LIST, url("queue", "change", queue.pk), LINKS.queue_url(queue.name)):
        with django_assert_max_num_queries(MOST_QUERIES):
            read(client, address)


def test_a_page_counts_the_tasks_of_every_status_and_leads_to_them(log_in_as: LogIn) -> None:
    noop.using(queue_name="mail").enqueue()
    noop.using(queue_name="mail", run_after=60).enqueue_many([((), {})] * 2)
    noop.using(queue_name="other", run_after=60).enqueue()
    client = log_in_as("viewer", "view_queue", "view_task")
    answer = client.get(LINKS.queue_url("mail"))
    counts = {each.status: str(each) for each in answer.context["counts"] if each.count}
    assert counts == {"ready": "1", "scheduled": "2"}
    assert "?q=status%3Ascheduled+queue%3Amail" in answer.content.decode()


def test_a_page_draws_how_many_tasks_waited(log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_queue")
    page = read(client, LINKS.queue_url("mail"))
    assert "No worker recorded in this period how many tasks wait." in page
    noop.using(queue_name="mail").enqueue()
    record_depths(connections["default"])
    page = read(client, LINKS.queue_url("mail"))
    assert "taskqueue-bar taskqueue-bar--waiting" in page
    assert "at most 1" in page


def test_a_page_shows_attempts_to_users_who_may_view_figures(log_in_as: LogIn) -> None:
    address = LINKS.queue_url("mail")
    assert "Outcomes" in read(log_in_as("viewer", "view_queue", "view_rollup"), address)
    User.objects.all().delete()
    assert "Outcomes" not in read(log_in_as("viewer", "view_queue"), address)


def test_an_empty_queue_is_deleted_from_its_page(log_in_as: LogIn) -> None:
    Queue.objects.create(name="old")
    client = log_in_as("staff", "view_queue", "control_queues")
    assert "taskqueue-delete-queue" in read(client, LINKS.queue_url("old"))
    answer = client.post(f"{LIST}old/act/", {"verb": "delete", "reason": "gone"}, follow=True)
    assert "Queue old deleted." in answer.content.decode()
    assert answer.redirect_chain[-1][0] == LIST
    assert not queues(client)
    noop.using(queue_name="mail").enqueue()
    Queue.objects.create(name="mail")
    answer = client.post(f"{LIST}mail/act/", {"verb": "delete"}, follow=True)
    assert "has 1 task that has not finished" in answer.content.decode()
