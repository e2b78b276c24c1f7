"""Failures reach what the project hears of errors by: a mail to ADMINS, and Sentry."""

from __future__ import annotations

import email
import json
import re
from collections import Counter
from datetime import timedelta
from email import policy
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import Fixed
from taskqueue.models import Task
from tests.conftest import Drain, StartWorker
from tests.sample import framework_tasks, tasks
from tests.sample.rest_tasks import sign_in
from tests.worker.reading import row
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

SEPARATOR = "-" * 79
ID = re.compile(r" id=([0-9a-f-]{36})")


class Reports:
    """Return the reports that the worker's processes have written to a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "tests.error_reporting",
            "TASKQUEUE_TEST_REPORTS": str(path),
        }

    def mails(self) -> dict[str, str]:
        """The texts of the mails by the ids of their tasks, each of which has one mail."""
        texts = [file.read_text() for file in self._path.glob("mail/*")]
        found = [
            email.message_from_string(each.strip(), policy=policy.default)
            for text in texts
            for each in text.split(SEPARATOR)
            if each.strip()
        ]
        ids = [ID.search(str(each["subject"])) for each in found]
        by_id = {
            id[1]: f"{each['subject']}\n{each.get_content()}"
            for id, each in zip(ids, found, strict=True)
            if id
        }
        assert len(by_id) == len(found), [str(each["subject"]) for each in found]
        return by_id

    def events(self) -> dict[str, dict[str, Any]]:
        """The events of Sentry by the ids of their tasks, each of which has one event."""
        lines = [
            line
            for file in self._path.glob("sentry-*.jsonl")
            for line in file.read_text().splitlines()
        ]
        events = [json.loads(line) for line in lines]
        counts = Counter(event["extra"]["task_id"] for event in events)
        assert set(counts.values()) <= {1}, counts
        return {event["extra"]["task_id"]: event for event in events}


@pytest.fixture
def reports(tmp_path: Path) -> Reports:
    path = tmp_path / "reports"
    path.mkdir()
    return Reports(path)


def test_each_task_that_fails_is_reported_once_and_nothing_else_is(
    drain: Drain, pool: str, reports: Reports
) -> None:
    raising: list[tuple[Any, str]] = [
        (tasks.fail.enqueue("of our own"), "ValueError"),
        (tasks.fail.using(max_attempts=2, backoff=Fixed(0)).enqueue("twice"), "ValueError"),
        (tasks.fail_with.enqueue("UnicodeError"), "UnicodeError"),
        (tasks.give_up.enqueue(), "GiveUp"),
        (tasks.return_set.enqueue(), "UnsupportedType"),
        (tasks.loop_for_ever.enqueue(), "TaskTimeout"),
        (tasks.mark_atomically.using(max_attempts=1).enqueue(1), "ValueError"),
        (tasks.raise_exit.enqueue("SystemExit"), "SystemExit"),
        (framework_tasks.fail.enqueue("of Django's framework"), "ValueError"),
        (framework_tasks.fail_until.enqueue(2), "LookupError"),
    ]
    unfit = sign_in.enqueue("ann", "hunter2")
    Task.objects.filter(id=unfit.id).update(args=["ann", "hunter2", "more"])
    raising.append((unfit, "ArgumentsDoNotBind"))
    if framework_tasks.TAKES_OPTIONS:
        raising.append((framework_tasks.stubborn.enqueue(9), "LookupError"))
        framework_tasks.stubborn.enqueue(2)
    for unheard in (tasks.fail_until, tasks.retry_later, tasks.snooze):
        unheard.enqueue(2)  # type: ignore[attr-defined]
    tasks.cancel_itself.enqueue()
    framework_tasks.add.enqueue(1)

    drain("--pool", pool, env=reports.environment)

    mails, events = reports.mails(), reports.events()
    expected = {str(result.id): name for result, name in raising}
    assert mails.keys() == events.keys() == expected.keys()
    for task_id, name in expected.items():
        assert "ERROR" in mails[task_id]
        assert f"Exception Type: {name}" in mails[task_id]
        event = events[task_id]
        assert event["exception"]["values"][-1]["type"] == name
        assert (event["logger"], event["level"]) == ("django.tasks", "error")
        assert event["logentry"]["message"] == "Task failed task=%s id=%s attempt=%s queue=%s"
        assert event["extra"]["queue_name"] == "default"
    # No body was called, and variables of other frames would show the arguments.
    assert "hunter2" not in mails[str(unfit.id)]
    assert "hunter2" not in json.dumps(events[str(unfit.id)])


def test_failures_that_only_the_parent_knows_are_reported_too(
    start_worker: StartWorker, reports: Reports
) -> None:
    crashing = tasks.exit_hard.using(max_crashes=2, crash_delay=0).enqueue()
    stubborn = tasks.loop_stubbornly.enqueue()
    late = tasks.fail.using(max_attempts=9, backoff=Fixed(60), deadline=0.5).enqueue()
    nobodys = tasks.noop.enqueue()
    Task.objects.filter(id=nobodys.id).update(
        name="shop.tasks.unknown", parked_at=timezone.now() - timedelta(days=2)
    )

    def has_ended() -> bool:
        return all(row(each).finished_at for each in (crashing, stubborn, late, nobodys))

    settings = {"KILL_GRACE": 0.2}
    worker = start_worker(env=reports.environment, settings=settings)
    wait_until(has_ended, 60, what="the end of all")
    worker.terminate()
    assert worker.wait() == 0

    mails, events = reports.mails(), reports.events()
    reasons = {
        crashing: "AttemptLost: The child process died",
        stubborn: "TaskTimeout: The body ran for longer than its timeout of 0.3 s",
        late: "DeadlineExceeded: The deadline passed before the task ended.",
        nobodys: "UnknownTask: No definition of 'shop.tasks.unknown'",
    }
    assert mails.keys() == events.keys() == {str(result.id) for result in reasons}
    for result, reason in reasons.items():
        assert reason in mails[str(result.id)]
        assert "exception" not in events[str(result.id)]
