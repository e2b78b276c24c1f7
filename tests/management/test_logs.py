"""`taskqueue logs`: the lines of a task, in order, and those to come."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from io import StringIO
from queue import Queue
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connections

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import TaskLog
from tests.api.tasks.test_history import say
from tests.engine.steps import claim_one, end
from tests.management.test_taskqueue import exit_code, refused, run, run_json
from tests.sample.tasks import noop

LONG = 60


@pytest.mark.django_db
def test_lines_are_printed_in_order_and_filtered() -> None:
    task = noop.enqueue()
    say(task.id, "one", "two\x1b[31m")
    say(task.id, "bad", level=40, attempt=2)
    lines = run("logs", task.id).splitlines()
    assert [line.rpartition("shop: ")[2] for line in lines] == ["one", "two�[31m", "bad"]
    assert "ERROR" in lines[2]
    assert len(run("logs", task.id, "--level", "warning").splitlines()) == 1
    assert len(run("logs", task.id, "--attempt", "1").splitlines()) == 2
    found = run_json("logs", task.id)
    assert [line["message"] for line in found] == ["one", "two\x1b[31m", "bad"]
    assert run_json("logs", task.id, "--after", found[1]["id"]) == found[2:]


@pytest.mark.django_db
def test_the_lines_of_no_task_are_refused() -> None:
    assert refused("logs", uuid4())[0] == 1
    assert exit_code(["logs", str(uuid4()), "--level", "loud"]) == 2


class Stream(StringIO):
    """A stream that hands out each line as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: Queue[str] = Queue()

    def write(self, text: str) -> int:
        if text.strip():
            self.lines.put(text)
        return len(text)

    def next(self) -> str:
        return self.lines.get(timeout=LONG)


@pytest.fixture
def followed(transactional_db: None) -> Iterator[tuple[Any, Stream, threading.Thread]]:
    """A task that runs, and what the command prints of it meanwhile."""
    task, stream = noop.enqueue(), Stream()

    def follow() -> None:
        try:
            call_command("taskqueue", "logs", str(task.id), "-f", "--format=json", stdout=stream)
        finally:
            connections.close_all()

    thread = threading.Thread(target=follow)
    thread.start()
    yield task, stream, thread
    thread.join(LONG)


def test_lines_are_followed_until_the_task_has_finished(followed: Any) -> None:
    task, stream, thread = followed
    claimed = claim_one()
    say(task.id, "one")
    assert json.loads(stream.next())["message"] == "one"
    say(task.id, "two", "three")
    assert json.loads(stream.next())["message"] == "two"
    assert json.loads(stream.next())["message"] == "three"
    say(task.id, "the last one")
    end(claimed, OutcomeKind.SUCCEEDED)
    assert json.loads(stream.next())["message"] == "the last one"
    thread.join(LONG)
    assert not thread.is_alive()
    assert TaskLog.objects.count() == 4
