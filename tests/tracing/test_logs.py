"""Records say which task they belong to, and can be JSON."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from opentelemetry import trace

from taskqueue.logs import FIELDS, LARGEST, ContextFilter, JSONFormatter
from taskqueue.worker.bodies.context import StepReading
from tests.conftest import Drain
from tests.sample import traced_tasks
from tests.tracing.conftest import Own
from tests.worker_process import ROOT

CANARY = "canary-2b7d0f51ac93-in-arguments"
OWN_LOGGING = {"DJANGO_SETTINGS_MODULE": "tests.json_logging"}
FAILURE_UNDER_DEBUG = """
import logging
import os
import subprocess
from django.conf import settings
settings.DEBUG = True
import django
django.setup()
logging.getLogger("django.tasks").error("Task failed")
"""


def record(message: str = "hello", *arguments: Any, **added: Any) -> logging.LogRecord:
    return logging.getLogger("shop").makeRecord(
        "shop", logging.WARNING, __file__, 1, message, arguments, None, extra=added
    )


def line(made: logging.LogRecord) -> dict[str, Any]:
    text = JSONFormatter().format(made)
    assert "\n" not in text
    assert len(text.encode()) <= LARGEST
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture
def context_filter() -> Iterator[ContextFilter]:
    yield ContextFilter()
    StepReading.is_wanted = False


def test_a_number_of_very_many_digits_loses_no_record() -> None:
    found = line(record(big=10**5000, small=7, yes=True))
    assert (found["message"], found["small"], found["yes"]) == ("hello", 7, True)
    assert found["big"] == "an int of 16,610 bits"


def test_a_failed_task_is_one_line_of_json_under_debug_too() -> None:
    told = subprocess.run(
        [sys.executable, "-c", FAILURE_UNDER_DEBUG], capture_output=True, text=True, check=True,
        cwd=ROOT, env={**os.environ, **OWN_LOGGING},
    ).stderr  # fmt: skip
    (only,) = told.splitlines()
    assert json.loads(only)["message"] == "Task failed"


def test_a_record_is_one_object_on_one_line() -> None:
    made = record("hello\n%s", "world", count=3, ratio=0.5, name_of="Zoë", nothing=None)
    made.created = datetime(2026, 11, 25, 8, 30, 1, 250_000, UTC).timestamp()
    assert line(made) == {
        "time": "2026-11-25T08:30:01.250Z",
        "level": "WARNING",
        "logger": "shop",
        "message": "hello\nworld",
        "count": 3,
        "ratio": 0.5,
        "name_of": "Zoë",
    }


def test_an_exception_stands_in_its_object() -> None:
    made = record()
    try:
        raise ValueError("in\ntwo lines")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert line(made)["exception"].endswith("ValueError: in\ntwo lines")


def test_fields_that_may_hold_anything_are_left_out() -> None:
    known = UUID(int=7)
    made = record(
        request=object(), table={"password": CANARY}, key=known, at=datetime(2026, 1, 2),
        price=Decimal("1.50"), far=float("inf"),
    )  # fmt: skip
    found = line(made)
    assert {"request", "table", "args"}.isdisjoint(found)
    assert found["key"] == str(known)
    assert (found["at"], found["price"], found["far"]) == ("2026-01-02 00:00:00", "1.50", "inf")


@pytest.mark.parametrize(
    "made",
    [
        record("x" * 100_000),
        record("\ud800🦆\x00\n" * 20_000),
        record(**{f"field_{number}": "v" * 2000 for number in range(200)}),
        record(**{f"{number:04}" * 500: "v" for number in range(200)}),
    ],
)
def test_a_line_stays_within_its_bound(made: logging.LogRecord) -> None:
    assert line(made)["logger"] == "shop"


def test_a_long_message_is_cut_in_its_middle() -> None:
    message = line(record("begin" + "x" * 100_000 + "end"))["message"]
    assert message.startswith("begin")
    assert message.endswith("end")


def test_outside_of_a_body_the_fields_are_empty(context_filter: ContextFilter) -> None:
    made = record()
    assert context_filter.filter(made)
    assert {name: getattr(made, name) for name in FIELDS} == dict.fromkeys(FIELDS, "")
    assert set(FIELDS).isdisjoint(line(made))


def test_fields_of_a_record_stay_as_they_are(context_filter: ContextFilter) -> None:
    made = record(task_id="of the project")
    context_filter.filter(made)
    assert made.task_id == "of the project"  # type: ignore[attr-defined]


def test_a_request_has_the_id_of_its_trace(own: Own, context_filter: ContextFilter) -> None:
    made = record()
    with trace.get_tracer("web").start_as_current_span("GET /") as span:
        context_filter.filter(made)
    assert line(made)["trace_id"] == f"{span.get_span_context().trace_id:032x}"


def records_of(log: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in log.splitlines() if each.startswith("{")]


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["process", "thread"])
@pytest.mark.django_db(transaction=True)
def test_records_of_a_body_name_its_task(own: Own, drain: Drain, pool: str) -> None:
    task = traced_tasks.say.enqueue(CANARY)
    (send,) = own()
    log = drain("--name", "paris", "--pool", pool, env=OWN_LOGGING)
    said = [each for each in records_of(log) if each["logger"] == "shop"]
    facts = {
        "task_id": str(task.id),
        "task_name": "tests.sample.traced_tasks.say",
        "attempt": 1,
        "queue": "default",
        "worker": "paris",
        "trace_id": send.trace_id,
    }
    assert [each["message"] for each in said] == ["the word is out", "it went wrong\nin two lines"]
    for each in said:
        assert each.items() >= facts.items()
    assert said[0]["count"] == 3
    assert "KeyError: 'inner'" in said[1]["exception"]
    assert CANARY not in log


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_records_of_a_step_name_its_workflow(drain: Drain) -> None:
    run = (traced_tasks.part.s(1) | traced_tasks.say.si("word")).enqueue()
    log = drain(env=OWN_LOGGING)
    said = [each for each in records_of(log) if each["logger"] == "shop"]
    assert said
    assert {each["workflow"] for each in said} == {str(run.id)}
    assert {each["step"] for each in said} <= set(run.steps)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_failure_is_logged_with_its_task_and_without_arguments(drain: Drain) -> None:
    task = traced_tasks.fail_quietly.enqueue(CANARY)
    log = drain(env=OWN_LOGGING)
    (failed,) = (each for each in records_of(log) if each["logger"] == "django.tasks")
    assert (failed["task_id"], failed["level"]) == (str(task.id), "ERROR")
    assert "ValueError: of no use" in failed["exception"]
    assert CANARY not in log
