"""A notice links to its subject, and has a button if a single action solves it."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone
from django.utils.translation import override

from taskqueue import control
from taskqueue.engine.examinations import keep
from taskqueue.models import Audit, Examination, Partition, Pause, Queue, Schedule, Task, Worker
from taskqueue.monitoring.doctor.finding import Check
from taskqueue.monitoring.doctor.keeping import notes_of
from taskqueue.worker.bodies.examining import run
from tests.admin.conftest import LogIn
from tests.admin.test_dashboard import make_running, make_worker, read, region, words
from tests.monitoring.rows import make_rollup

pytestmark = pytest.mark.django_db
DOCTOR = "/admin/taskqueue/dashboard/doctor/"


@pytest.fixture
def worker(db: None) -> Worker:
    """One that lives, and takes from all queues."""
    return make_worker("worker-1")


def ready(**fields: Any) -> Task:
    values = {"name": "shop.tasks.send", "status": "ready", "crash_delay": timedelta(seconds=1)}
    return Task.objects.create(**{**values, **fields})


def buttons(html: str) -> list[tuple[str, str]]:
    """The address and the value of each."""
    found = re.findall(r'formaction="([^"]+)" name="verb" value="(\w+)"', html)
    return [(unescape(url), value) for url, value in found]


def links(html: str) -> dict[str, str]:
    """The addresses by their text."""
    found = re.findall(r'<a class="button[^"]*" role="button" href="([^"]+)">([^<]+)</a>', html)
    return {text: unescape(url) for url, text in found}


def everything_wrong(worker: Worker) -> None:
    now = timezone.now()
    Queue.objects.create(name="mail", paused_at=now)
    ready(queue_name="mail")
    Schedule.objects.create(
        name="nightly", task_name="a", rule={}, request={}, served_until=now,
        paused_at=now, pause_after_failures=3, failures_in_row=3,
    )  # fmt: skip
    control.pause_definition("shop.tasks.export", by="ann")
    control.pause_all(by="ann")
    make_running(worker, wedged_at=now)
    Worker.objects.filter(pk=worker.pk).update(trouble="no module named shop")


def test_each_notice_has_the_button_that_mends_it(log_in_as: LogIn, worker: Worker) -> None:
    everything_wrong(worker)
    shown = region(read(log_in_as("superuser")), "notices")
    values = {url.partition("?")[0].split("/")[-3]: value for url, value in buttons(shown)}
    assert sorted(value for _, value in buttons(shown)) == [
        "resume", "resume", "resume_all", "resume_definition", "stop", "stop",
    ]  # fmt: skip
    assert values["mail"] == "resume"
    assert 'data-ask="Resume everything?"' in shown
    assert "“”" not in shown


@pytest.mark.parametrize(
    ("permission", "values"),
    [
        ("control_queues", ["resume", "resume_all", "resume_definition"]),
        ("stop", ["stop", "stop"]),
        ("view_queue", []),
        ("edit_schedules", []),  # To resume one takes the permission to enqueue too.
    ],
)
def test_a_button_is_for_those_who_may_do_what_it_says(
    permission: str, values: list[str], log_in_as: LogIn, worker: Worker
) -> None:
    everything_wrong(worker)
    client = log_in_as("viewer", "view_task", "view_worker", "view_schedule", permission)
    shown = region(read(client), "notices")
    assert sorted(value for _, value in buttons(shown)) == values


def test_the_buttons_do_it_and_are_audited(log_in_as: LogIn, worker: Worker) -> None:
    everything_wrong(worker)
    client = log_in_as("superuser")
    shown = region(read(client), "notices")
    for url, value in buttons(shown):
        if value.startswith("resume"):
            given = {"verb": value, "reason": "it is over", "next": "/admin/taskqueue/dashboard/"}
            assert client.post(url, given)["Location"] == given["next"]
    assert not Pause.objects.exists()
    assert Queue.objects.get(name="mail").paused_at is None
    assert Schedule.objects.get().paused_at is None
    assert Audit.objects.filter(reason="it is over").count() == 4


def test_who_was_asked_to_stop_is_not_asked_by_another_button(
    log_in_as: LogIn, worker: Worker
) -> None:
    everything_wrong(worker)
    client = log_in_as("superuser")
    stops = [url for url, value in buttons(region(read(client), "notices")) if value == "stop"]
    assert len(stops) == 2
    for url in stops:
        client.post(url, {"verb": "stop"})
    shown = region(read(client), "notices")
    assert "seems wedged" in shown
    assert "no module named shop" in shown
    assert "stop" not in [value for _, value in buttons(shown)]


def test_failures_lead_to_their_tasks_and_to_a_retry_of_all(
    log_in_as: LogIn, worker: Worker
) -> None:
    now = timezone.now()
    failed = {"status": "failed", "finished_at": now, "error_class": "shop.errors.Down"}
    ready(**failed)
    make_rollup(now, failed=20, succeeded=1)
    client = log_in_as("superuser")
    shown = region(read(client), "notices")
    assert "1 task named shop.tasks.send failed with shop.errors.Down" in words(shown)
    new = next(part for part in shown.split("<li") if "A new kind of error" in part)
    assert "since" in words(new)
    tasks, retry = links(new)["Tasks"], links(new)["Retry all…"]
    assert client.get(tasks).status_code == 200
    assert "shop.tasks.send" in client.get(retry).content.decode().replace("<wbr>", "")


def test_halted_sequences_lead_to_the_failed_task(log_in_as: LogIn, worker: Worker) -> None:
    failed = ready(status="failed", finished_at=timezone.now() - timedelta(days=2))
    Partition.objects.create(id=uuid4(), state="halted", holder=failed.pk, queue_name="default")
    shown = region(read(log_in_as("superuser")), "notices")
    assert f"the task …{str(failed.pk)[-8:]} failed. No task waits behind it." in words(shown)
    assert f"/admin/taskqueue/task/{failed.pk}/change/" in shown


def test_halted_sequences_are_for_those_who_may_view_limits(
    log_in_as: LogIn, worker: Worker
) -> None:
    failed = ready(status="failed", finished_at=timezone.now() - timedelta(days=2))
    Partition.objects.create(id=uuid4(), state="halted", holder=failed.pk, queue_name="default")
    assert "sequence is halted" not in read(log_in_as("viewer", "view_task"))


def test_a_retry_of_all_is_for_those_who_may_operate(log_in_as: LogIn, worker: Worker) -> None:
    ready(status="failed", finished_at=timezone.now(), error_class="shop.errors.Down")
    shown = region(read(log_in_as("viewer")), "notices")
    assert links(shown).keys() == {"Tasks"}


def test_the_doctor_has_a_page_with_the_same_remedies(log_in_as: LogIn, worker: Worker) -> None:
    everything_wrong(worker)
    client = log_in_as("superuser")
    assert DOCTOR in region(read(client), "state")
    page = client.get(DOCTOR).content.decode()
    told = words(page)
    for text in (
        "The worker worker-1 reports a problem: no module named shop",
        "manage.py taskqueue resume mail, unless the pause is still needed.",
        "The schedule nightly paused itself after 3 failed runs in a row.",
    ):
        assert text in told
    assert {value for _, value in buttons(page)} >= {"resume", "resume_all", "stop"}
    assert page.index("problem</span>") < page.index("ok</span>")


def test_the_page_of_the_doctor_has_a_worker_run_it_for_the_notices(
    log_in_as: LogIn, worker: Worker
) -> None:
    client = log_in_as("superuser")
    assert "(last run" not in read(client)
    assert client.post(DOCTOR).url == DOCTOR  # type: ignore[attr-defined]
    assert Examination.objects.get().requested_at is not None
    ready(status="scheduled", run_after=timezone.now() - timedelta(hours=1))
    run("worker-1", host="web-1")
    page = words(region(read(client), "state"))
    assert re.search(r"\(last run \d+ m?s ago\)", page)
    notices = region(read(client), "notices")
    assert "The doctor found: A task has been due for 60 min" in words(notices)
    assert links(notices)["Doctor"] == DOCTOR
    assert "The worker worker-1 on web-1 ran the doctor" in words(
        client.get(DOCTOR).content.decode()
    )


def test_a_finding_is_for_those_who_may_view_its_subject(log_in_as: LogIn, worker: Worker) -> None:
    everything_wrong(worker)
    page = log_in_as("viewer", "view_task", "view_worker").get(DOCTOR).content.decode()
    assert "reports a problem" in page
    assert "nightly" not in page
    assert "queue mail" not in page


def test_the_page_of_the_doctor_has_what_workers_found_on_their_hosts(log_in_as: LogIn) -> None:
    make_worker("w", host="app-2")
    check = Check("clocks")
    found = check.problem("This host's clock is 90 s behind the database's.", "Use NTP.")
    keep(connection, notes_of([found], host="app-2"), worker_name="w", host="app-2")
    told = unescape(words(log_in_as("superuser").get(DOCTOR).content.decode()))
    assert "The doctor found on app-2: This host's clock is 90 s behind" in told
    assert "Use NTP." in told


def test_the_page_of_the_doctor_needs_no_lax_policy_and_shows_text_as_text(
    log_in_as: LogIn,
) -> None:
    make_worker("w", trouble="<script>alert(1)</script>")
    page = log_in_as("superuser").get(DOCTOR).content.decode()
    assert "<script>alert" not in page
    tags = re.findall(r"<[a-zA-Z][^>]*>", page)
    assert not [tag for tag in tags if re.search(r"\s(style|on[a-z]+)\s*=", tag)]


def test_the_page_of_the_doctor_speaks_the_language_of_its_reader(log_in_as: LogIn) -> None:
    make_worker("w", seen_at=timezone.now() - timedelta(hours=3))
    ready(run_after=timezone.now() - timedelta(hours=2))
    with override("zh-hans"):
        page = log_in_as("superuser").get(DOCTOR).content.decode()
    said = re.findall(r'<div class="taskqueue-said">(.*?)</div>', page, re.DOTALL)
    english = [text for text in said if not re.search("[\u4e00-\u9fff]", text)]
    assert len(english) < len(said)
    assert [text for text in english if not re.match(r"<p>(SQLite|PostgreSQL) [\d.]+", text)] == []
