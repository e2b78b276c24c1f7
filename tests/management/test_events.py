"""`manage.py taskqueue events`: the last events, those behind a number, and following them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from taskqueue.models import Audience, Subscription
from tests.events.steps import listen, number_all
from tests.sample.tasks import add, noop
from tests.worker_process import ROOT, wait_until, worker_environment

pytestmark = pytest.mark.django_db(transaction=True)


def told(*arguments: str) -> Any:
    out = StringIO()
    call_command("taskqueue", "events", *arguments, "--format", "json", stdout=out)
    return json.loads(out.getvalue())


def test_it_prints_the_last_events_that_fit() -> None:
    listen()
    add.enqueue(1)
    noop.enqueue_many([((), {})] * 3)
    number_all()
    assert [event["seq"] for event in told("task.*", "--limit", "2")] == [3, 4]
    assert [event["seq"] for event in told("--name", "*.add")] == [1]
    assert [event["seq"] for event in told("--after", "2")] == [3, 4]
    out = StringIO()
    call_command("taskqueue", "events", stdout=out)
    assert "task.enqueued" in out.getvalue()


def test_whoever_looks_is_subscribed() -> None:
    assert told("task.failed") == []
    assert Audience.objects.get().kinds == "task.failed"
    assert Subscription.objects.count() == 1


def test_it_says_what_is_wrong() -> None:
    with pytest.raises(CommandError, match=r"Did you mean 'task\.failed'") as caught:
        told("task.faild")
    assert caught.value.returncode == 2
    Audience.objects.create(last_seq=9, pruned_seq=7)
    with pytest.raises(CommandError, match="the oldest one is number 8"):
        told("--after", "1")


def test_it_follows_until_it_is_interrupted() -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "taskqueue", "events", "--follow", "--format", "json"],
        cwd=ROOT, env={**os.environ, **worker_environment({})}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        wait_until(Subscription.objects.exists, what="its subscription")
        noop.enqueue()
        number_all()
        assert process.stdout is not None
        event = json.loads(process.stdout.readline())
        assert (event["seq"], event["kind"]) == (1, "task.enqueued")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
