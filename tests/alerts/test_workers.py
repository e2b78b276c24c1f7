"""Real workers judge the rules, and tell each raise and each clear once, whoever is killed."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from taskqueue.declarations.own_tasks import MAIL
from taskqueue.models import AlertRule, Incident, Schedule, Task
from tests.alerts.steps import make_rule
from tests.conftest import StartWorker
from tests.monitoring.rows import make_schedule
from tests.sample.tasks import noop
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow
QUICK = {"PING_INTERVAL": 0.2, "TAKEOVER_INTERVAL": 0.2}
PATIENCE = 240


def hurry() -> bool:
    """Have the rules judged at once, and nothing gathered; not those that are due already."""
    later = AlertRule.objects.filter(next_at__gt=timezone.now() + timedelta(seconds=1))
    if later.exists():
        later.update(next_at=F("created_at"), told_at=None)
    return False


def read(folder: Path) -> list[EmailMessage]:
    """The mails in a folder, the oldest first."""
    found = []
    for path in sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime):
        for text in path.read_bytes().split(b"-" * 79 + b"\n"):
            if text.strip():
                found.append(cast(EmailMessage, message_from_bytes(text, policy=policy.default)))
    return found


def test_an_alert_is_raised_and_cleared_by_workers_and_its_mails_say_so(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    folder = tmp_path / "mail"
    make_rule("lanes", "queue_unserved", wait=0, mail=["ann@example.org"])
    noop.using(queue_name="web").enqueue()
    env = {"TASKQUEUE_TEST_MAIL": str(folder)}
    start_worker("--queues", "default", env=env, settings=QUICK)
    (first,) = wait_until(lambda: read(folder), PATIENCE, what="a mail")
    assert first["To"] == "ann@example.org"
    # Django 6 folds a long header at once, which leaves a space to Python's parser.
    assert first["Subject"].strip() == (
        "[taskqueue] Firing: No running worker serves the queue web. Waiting tasks: 1."
    )
    assert "--queues web" in first.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    incident = Incident.objects.get()
    assert (incident.subject, incident.status) == ("web", "firing")
    start_worker("--queues", "web", env=env, settings=QUICK)
    mails = wait_until(
        lambda: hurry() or (len(found := read(folder)) > 1 and found), PATIENCE, what="the end"
    )
    assert isinstance(mails, list)
    assert mails[-1]["Subject"].strip().startswith("[taskqueue] Cleared: ")
    incident.refresh_from_db()
    assert (incident.status, incident.is_settled) == ("ended", True)
    assert told() == {(incident.pk, "raised"): 1, (incident.pk, "cleared"): 1}


def told() -> Counter[tuple[int, str]]:
    """How often each incident was told in each way, by the messages that were enqueued."""
    tasks = Task.objects.filter(name=MAIL["name"])
    return Counter((id, what) for task in tasks for id, what in task.kwargs["news"])


def faults() -> list[str]:
    """What is wrong with the incidents: each is to be raised and cleared once."""
    found = []
    for incident in Incident.objects.order_by("id"):
        words = {what: number for (id, what), number in told().items() if id == incident.pk}
        if words not in ({"raised": 1, "cleared": 1}, {"passed": 1}):
            found.append(f"{incident.subject} {incident.pk}: {words}")
    return found


def test_each_raise_and_clear_is_sent_once_while_judging_workers_are_killed(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    env = {"TASKQUEUE_TEST_MAIL": str(tmp_path / "mail")}
    chance = random.Random(17)
    make_rule("schedules", "schedule_trouble")
    make_schedule("nightly", next_at=None)
    workers = [start_worker(env=env, settings=QUICK) for _ in range(2)]

    def until(condition: Any, what: str) -> None:
        """Kill a worker soon after the rule falls due, and wait with others in its place."""
        hurry()
        time.sleep(chance.uniform(0, 0.4))  # Where it is hit differs each time.
        workers.pop(0).kill()
        workers.append(start_worker(env=env, settings=QUICK))
        wait_until(lambda: hurry() or condition(), PATIENCE, what=what)

    for number in range(1, 4):
        Schedule.objects.update(trouble=f"no such task {number}")
        until(lambda: Incident.objects.filter(notified_at__isnull=False, ended_at=None), "a raise")
        Schedule.objects.update(trouble="")
        until(lambda: not Incident.objects.filter(is_settled=False).exists(), "a clear")
    assert Incident.objects.count() == 3
    assert faults() == []


@pytest.mark.postgresql_only
def test_a_worker_killed_while_it_raises_an_alert_has_raised_and_sent_nothing(
    start_worker: StartWorker,
) -> None:
    make_rule("schedules", "schedule_trouble")
    make_schedule("nightly", next_at=None, trouble="no such task")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE taskqueue_incident IN EXCLUSIVE MODE")

        def waits() -> bool:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND "
                "relation = 'taskqueue_incident'::regclass"
            )
            return bool(cursor.fetchone()[0])

        worker = start_worker(settings=QUICK)
        wait_until(waits, PATIENCE, what="a worker that raises")
        worker.kill()
        worker.wait()
    assert not Incident.objects.exists()
    assert not Task.objects.exists()
    start_worker(settings=QUICK)
    wait_until(lambda: hurry() or Incident.objects.exists(), PATIENCE, what="a raise")
    (incident,) = Incident.objects.all()
    assert told() == {(incident.pk, "raised"): 1}
