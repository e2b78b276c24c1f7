"""The notices and the findings of the doctor over REST."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from taskqueue import control
from taskqueue.models import Examination
from taskqueue.worker.bodies.examining import run
from tests.api.conftest import ApiClient
from tests.monitoring.rows import HOUR, ago, make_schedule, make_task, make_worker

pytestmark = pytest.mark.django_db


def fill() -> None:
    make_worker(trouble="no module named shop")
    make_schedule("nightly", paused_at=ago(HOUR), pause_after_failures=1, failures_in_row=1)
    make_task(queue_name="mail")
    control.pause("mail", by="ann")


def test_the_notices_say_what_is_wrong_since_when_and_what_to_do(root: ApiClient) -> None:
    fill()
    told = root.look("notices/").json()
    assert [(each["code"], each["level"], each["subject"]) for each in told["notices"]] == [
        ("schedule_paused_itself", "error", "nightly"),
        ("worker_trouble", "error", "w1"),
        ("paused_with_waiting", "warning", "mail"),
    ]
    paused = told["notices"][-1]
    assert paused["count"] == 1
    assert paused["since"] < told["at"]
    assert "manage.py taskqueue resume mail" in paused["remedy"]


def test_the_doctor_finds_what_it_finds_on_the_command_line(root: ApiClient) -> None:
    fill()
    told = root.look("doctor/").json()
    assert told["worst"] == "problem"
    seen = {each["check"]: each["seen"] for each in told["findings"]}
    assert seen["workers"] == "The worker w1 is in trouble: no module named shop"
    assert seen["migrations"] == "All migrations are applied."


def test_a_worker_carries_out_a_requested_examination(root: ApiClient) -> None:
    assert root.look("notices/").json()["examined_at"] is None
    assert root.act("doctor/").status_code == 202
    row = Examination.objects.get()
    assert row.requested_at is not None
    assert row.examined_at is None
    make_worker()
    make_task("scheduled", run_after=ago(HOUR))
    run("w1", host="web-1")
    told = root.look("notices/").json()
    assert told["examined_at"] is not None
    (notice,) = (each for each in told["notices"] if each["subject"] == "duties")
    assert (notice["code"], notice["level"]) == ("doctor", "error")
    assert notice["since"] == told["examined_at"]
    assert notice["sentence"].startswith("The doctor found: A task has been due for 60 min")


def test_each_is_for_those_who_may_view_what_it_is_about(
    member: Callable[..., ApiClient],
) -> None:
    fill()
    codes = {each["code"] for each in member("view_task").look("notices/").json()["notices"]}
    assert codes == {"paused_with_waiting"}
    found = member("view_task", "view_worker").look("doctor/").json()["findings"]
    checks = {each["check"] for each in found}
    assert "workers" in checks
    assert not checks & {"queues", "schedules", "duties", "workflows", "limits", "webhooks"}
