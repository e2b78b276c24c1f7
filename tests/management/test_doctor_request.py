"""`doctor --request` has a worker run the doctor, and `top` shows what it then finds."""

from __future__ import annotations

import pytest

from taskqueue.models import Examination
from taskqueue.worker.bodies.examining import run as examine
from tests.management.test_taskqueue import run, run_json
from tests.monitoring.rows import HOUR, ago, make_task, make_worker

pytestmark = pytest.mark.django_db


def test_the_doctor_writes_only_if_it_is_to_request_an_examination() -> None:
    run("doctor", "--fail-on", "never")
    assert not Examination.objects.exists()
    run("doctor", "--fail-on", "never", "--request")
    assert Examination.objects.get().requested_at is not None


def test_top_and_the_doctor_tell_of_the_examination() -> None:
    make_worker()
    make_task("scheduled", run_after=ago(HOUR))
    examine("w1", host="web-1")
    assert "!! The doctor found: A task has been due for 60 min" in run("top", "--once")
    found = run_json("doctor", "--fail-on", "never")["findings"]
    (told,) = (each["seen"] for each in found if each["check"] == "examinations")
    assert told.startswith("The worker w1 on web-1 ran the doctor")
