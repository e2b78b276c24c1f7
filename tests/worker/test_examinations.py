"""A worker runs the doctor in a process of its own, and keeps what it finds."""

from __future__ import annotations

import errno
import signal
import subprocess
import time

import psutil
import pytest
from django.db import connection

from taskqueue.engine.examinations import request_examination
from taskqueue.models import Examination, Task, Worker
from taskqueue.worker.examiner import FIRST, PROGRAM, Examiner
from tests.conftest import StartWorker
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def examined() -> Examination | None:
    return Examination.objects.filter(examined_at__isnull=False).first()


def examinations_of(worker: int) -> list[psutil.Process]:
    children = psutil.Process(worker).children()
    return [each for each in children if each.status() != psutil.STATUS_ZOMBIE
            and PROGRAM in each.cmdline()]  # fmt: skip


@pytest.mark.slow
def test_a_worker_examines_when_somebody_asks_without_a_task(start_worker: StartWorker) -> None:
    worker = start_worker("--concurrency", "1")
    request_examination(connection)
    row = wait_until(examined)
    assert (row.worker_name, row.host) == tuple(Worker.objects.values_list("name", "host").get())
    wait_until(lambda: not examinations_of(worker.pid))
    assert not Task.objects.exists()
    first = row.examined_at
    request_examination(connection)
    wait_until(lambda: (row := examined()) and row.examined_at != first)
    worker.terminate()
    assert worker.wait() == 0
    assert "Traceback" not in worker.log()


def test_a_new_worker_examines_only_if_somebody_asks() -> None:
    asked, timed = Examiner(worker_name="w1", host="web-1").duties()
    now = time.monotonic()
    assert (asked.is_due(now), timed.is_due(now), timed.is_due(now + FIRST)) == (True, False, True)


def test_a_worker_without_a_module_of_settings_does_not_examine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    assert Examiner(worker_name="w1", host="web-1").duties() == ()


def test_a_second_examination_waits_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = Examiner(worker_name="w1", host="web-1")
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "600"]))
        return started[-1]

    monkeypatch.setattr(examiner, "_start", start)
    examiner.step(connection)
    request_examination(connection)
    examiner.step(connection)
    assert len(started) == 1
    examiner.end()
    assert started[0].returncode == -signal.SIGKILL
    examiner.step(connection)
    assert len(started) == 2
    examiner.end()


def test_an_examination_that_takes_too_long_is_ended_and_leaves_no_zombie(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    examiner = Examiner(worker_name="w1", host="web-1")
    process = subprocess.Popen(["sleep", "600"])
    monkeypatch.setattr(examiner, "_start", lambda: process)
    monkeypatch.setattr("taskqueue.worker.examiner.LONGEST", 0.01)
    examiner.step(connection)
    wait_until(lambda: process.returncode is not None)
    assert process.returncode == -signal.SIGKILL
    assert "Examination given up" in caplog.text


def test_a_host_without_room_for_another_process_is_no_outage_of_the_database(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("taskqueue.worker.examiner.subprocess.Popen", refuse)
    examiner = Examiner(worker_name="w1", host="web-1")
    examiner.step(connection)
    assert "Examination not started" in caplog.text
    examiner.end()
