"""The recipe for Sentry: the error of a task belongs to the trace of who enqueued it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Drain
from tests.sample import traced_tasks
from tests.tracing.conftest import Own

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def reported(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_an_error_in_sentry_belongs_to_the_trace(own: Own, drain: Drain, tmp_path: Path) -> None:
    task = traced_tasks.refuse.enqueue("why")
    (send,) = own()
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.traced_sentry",
        "TASKQUEUE_TEST_REPORTS": str(tmp_path),
    }
    drain(env=environment, settings={"TRACING": True})
    (event,) = reported(tmp_path)
    assert event["extra"]["task_id"] == str(task.id)
    assert event["contexts"]["trace"]["trace_id"] == send.trace_id
