"""`manage.py taskqueue health`: an exit code, and why."""

from __future__ import annotations

import io
import json
import re
import socket
import time
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from taskqueue import control
from taskqueue.models import Task, Worker
from tests.management.test_trouble import manage
from tests.sample import tasks

pytestmark = pytest.mark.django_db(transaction=True)


def add_worker(name: str = "paris", *, seen_ago: float = 1, **values: Any) -> Worker:
    now = timezone.now()
    fields = {
        "host": "host-1", "queues": {}, "pid": 1, "started_at": now, "lease_seconds": 300, **values,
    }  # fmt: skip
    return Worker.objects.create(name=name, seen_at=now - timedelta(seconds=seen_ago), **fields)


def health(*flags: str) -> str:
    """Return its output where it exits with 0."""
    said = io.StringIO()
    call_command("taskqueue", "health", *flags, stdout=said)
    return said.getvalue().strip()


def refusal(*flags: str) -> str:
    """Return its output where it exits with 1."""
    with pytest.raises(CommandError) as refused:
        health(*flags)
    assert refused.value.returncode == 1
    return str(refused.value)


def test_a_worker_that_was_seen_within_its_lease_is_enough() -> None:
    assert refusal() == "There is no worker."
    worker = add_worker(seen_ago=200)
    assert re.match(r"paris was seen 2\d\d\.\d s ago", health())
    assert health("--worker", "paris", "--host", "host-1").startswith("paris was seen 2")
    said = refusal("--max-age", "100")
    assert re.match(r"No worker is running: paris was last seen 2\d\d\.", said)
    assert refusal("--worker", "rome") == "There is no worker named 'rome'."
    assert refusal("--worker", "pa\0ris").startswith("There is no worker named ")
    here = socket.gethostname()
    assert refusal("--host") == f"There is no worker on the host {here!r}."

    Worker.objects.update(lease_seconds=150)
    assert refusal("--worker", "paris").startswith("No worker named 'paris' is running: ")
    assert health("--max-age", "10m")
    worker.status = "lost"
    worker.save(update_fields=["status"])
    assert health("--max-age", "10m"), "what others think of it counts for less than its own sign"
    Worker.objects.update(status="stopped")
    assert "paris ended 2" in refusal("--max-age", "10m")


def test_a_worker_that_claims_nothing_lives_and_is_said_not_to_claim() -> None:
    add_worker("w2", status="quiet")
    assert health("--worker", "w2").endswith(" s ago. It is quiet and claims nothing.")
    add_worker("w1", seen_ago=5)
    assert health().startswith("w1 was seen "), "one that works is told first"


def test_each_queue_wants_a_worker_that_takes_tasks_from_it() -> None:
    add_worker("all", status="quiet")
    add_worker("mails", queues={"mail": 1})
    add_worker("ill", queues={"low": 1}, trouble="Children do not start")
    assert health("--queue", "mail")
    assert refusal("--queue", "mail", "--queue", "low") == (
        "No running worker takes tasks from the queue 'low': all is quiet; ill is in trouble."
    )
    assert "from the queue 'mail': all is quiet." in refusal("--queue", "mail", "--worker", "all")
    Worker.objects.filter(name="all").update(status="stopping")
    assert "from the queue 'other': all is draining." in refusal("--queue", "other")
    assert health("--worker", "all"), "it drains, and lives"


def test_the_oldest_ready_task_may_not_wait_for_longer_than_asked() -> None:
    add_worker()
    tasks.noop.using(queue_name="mail").enqueue()
    tasks.noop.using(queue_name="low").enqueue()
    Task.objects.filter(queue_name="mail").update(run_after=timezone.now() - timedelta(minutes=10))
    assert health()
    assert health("--max-latency", "5m", "--queue", "low")
    said = refusal("--max-latency", "5m")
    assert re.match(r"The oldest ready task of the queue 'mail' has waited for 6\d\d", said)
    assert health("--max-latency", "15m")
    control.pause("mail", by="ann")
    assert health("--max-latency", "5m"), "it waits because somebody wanted it to"


def test_a_notice_of_the_dashboard_fails_where_it_is_asked_for() -> None:
    add_worker()
    assert health("--notices", "warning")
    tasks.noop.using(queue_name="mail").enqueue()
    control.pause("mail", by="ann")
    assert health("--notices", "error")
    assert refusal("--notices", "warning") == "The queue mail is paused. Waiting tasks: 1."
    Worker.objects.update(trouble="no module named shop")
    assert "is in trouble: no module named shop" in refusal("--notices", "error")


def test_json_holds_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    add_worker(queues={"mail": 1})
    found = json.loads(health("--queue", "mail", "--format", "json"))
    assert found["status"] == "ok"
    assert [(each["name"], each["ok"]) for each in found["checks"]] == [
        ("worker", True),
        ("queue mail", True),
    ]
    with pytest.raises(SystemExit) as ended:
        call_command("taskqueue", "health", "--queue", "low", "--format", "json")
    assert ended.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "unavailable"
    assert [each["ok"] for each in found["checks"]] == [True, False]


@pytest.mark.parametrize("flag", ["--max-age", "--max-latency", "--timeout"])
@pytest.mark.parametrize("value", ["0", "-1", "soon", "100w"])
def test_times_that_cannot_be_meant_are_wrong_usage(flag: str, value: str) -> None:
    with pytest.raises(CommandError, match=f"argument {flag}"):
        health(f"{flag}={value}")


@pytest.mark.slow
def test_a_database_that_never_answers_is_said_not_to_within_the_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        database = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "none",
            "HOST": "127.0.0.1",
            "PORT": str(silent.getsockname()[1]),
            "OPTIONS": {"connect_timeout": 600},
        }
        began = time.monotonic()
        code, said = manage(database, "taskqueue", "health", "--timeout", "0.2")
    assert (code, said) == (1, "CommandError: The database has not answered within 0.2 s.")
    # Nor does the process wait for its thread to give up.
    assert time.monotonic() - began < 100
