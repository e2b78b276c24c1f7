"""One description of each noun: REST and the command line give the same fields, and values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from rest_framework import serializers

from taskqueue import chord, schedules
from taskqueue.api.describing import serializer_for
from taskqueue.control import TaskFilter, start_operation
from taskqueue.monitoring.read_models.base import about, from_row, json_form
from taskqueue.rules import Every
from tests.api.conftest import ApiClient
from tests.management.test_taskqueue import run
from tests.monitoring.rows import make_running, make_task, make_worker
from tests.sample.tasks import add, echo, noop

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)
ID = UUID("01a2022f-c607-74e3-a122-9f8b03c681f8")


def run_json(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--format", "json"))


def test_a_worker_is_the_same_for_rest_and_the_command_line(root: ApiClient) -> None:
    make_worker(queues={"mail": 2}, memory_bytes=5, trouble="ill")
    make_running("w1")
    assert run_json("workers") == root.look("workers/").json()["results"]


def test_a_queue_is_the_same_for_rest_and_the_command_line(root: ApiClient) -> None:
    make_worker(queues={"mail": 1})
    noop.using(queue_name="mail").enqueue()
    [told], [shown] = run_json("queues"), root.look("queues/").json()["results"]
    assert told.pop("oldest_seconds") == pytest.approx(shown.pop("oldest_seconds"), abs=30)
    assert told == shown


def test_a_task_is_the_same_for_rest_and_the_command_line(root: ApiClient) -> None:
    task = make_task("running", attempt=1, name=noop.name)
    make_running(task=task, progress=12.5)
    shown = root.look(f"tasks/{task.id}/").json()
    told = run_json("show", task.id)
    assert told.pop("latest_attempts") == root.look(f"tasks/{task.id}/attempts/").json()["results"]
    assert told.pop("audit") == []
    parts = root.look(f"tasks/{task.id}/parts/").json()["results"]
    assert told.pop("result_parts") == parts == []
    # What makes another task is not for types that REST may not enqueue.
    assert set(told.pop("can")) >= set(shown.pop("can"))
    assert told == shown
    [listed] = run_json("list")
    assert listed == root.look("tasks/").json()["results"][0]


def test_an_operation_is_the_same_for_rest_and_the_command_line(root: ApiClient) -> None:
    noop.enqueue()
    operation = start_operation("cancel", TaskFilter(statuses=["ready"]), query="status:ready")
    assert run_json("operations") == root.look("operations/").json()["results"]
    shown = root.look(f"operations/{operation.id}/").json()
    assert run_json("operations", "show", operation.id) == shown


def test_a_schedule_is_the_same_for_rest_and_the_command_line(root: ApiClient) -> None:
    schedules.create("hourly", noop.name, Every(hours=1))
    schedules.run_now("hourly")
    assert run_json("schedules", "list") == root.look("schedules/").json()["results"]
    told = run_json("schedules", "show", "hourly")
    assert [entry["verb"] for entry in told.pop("audit")] == ["run_now", "create"]
    assert told == root.look("schedules/hourly/").json()
    runs = root.look("schedules/hourly/runs/").json()["results"]
    assert run_json("schedules", "history", "hourly") == runs


def test_a_workflow_is_the_same_for_rest_and_the_command_line(root: ApiClient) -> None:
    run = chord([add.s(1, 2), add.s(3, 4)], echo.s()).enqueue()
    shown = root.look(f"workflows/{run.id}/").json()
    told = run_json("workflows", "show", run.id)
    assert told.pop("steps") == root.look(f"workflows/{run.id}/steps/").json()["results"]
    assert told.pop("audit") == []
    assert told == shown
    assert run_json("workflows") == root.look("workflows/").json()["results"]
    assert run_json("workflows", "graph", run.id) == root.look(f"workflows/{run.id}/graph/").json()


def test_an_age_does_not_change_the_etag_of_a_worker(root: ApiClient) -> None:
    make_worker()
    seen = root.look("workers/w1/")
    assert "seen_seconds" not in seen.json()
    assert root.look("workers/w1/", if_none_match=seen["ETag"]).status_code == 304


# The parts that make them


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A part."""

    at: datetime


@dataclass(frozen=True, kw_only=True)
class Outer:
    """A whole."""

    id: UUID
    status: str = about("How it is.", choices=["good", "bad"])
    names: list[str] | None
    wait: timedelta | None = about(column="pause")
    age_seconds: float = about(in_json=False)
    parts: list[Inner]
    last: Inner | None
    value: Any


def outer(**values: Any) -> Outer:
    row = type("Row", (), {"id": ID, "status": "good", "names": ["a"], "value": {"b": None}})()
    row.pause = timedelta(seconds=1.5)
    return from_row(Outer, row, age_seconds=3.0, parts=[Inner(at=MOMENT)], last=None, **values)


def test_the_json_form_has_moments_in_utc_durations_in_seconds_and_no_ages() -> None:
    assert json_form(outer()) == {
        "id": str(ID),
        "status": "good",
        "names": ["a"],
        "wait": 1.5,
        "parts": [{"at": "2026-01-31T12:00:00Z"}],
        "last": None,
        "value": {"b": None},
    }


def test_a_value_without_a_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="has no form in JSON"):
        json_form({"a": object()})


def test_a_serializer_describes_the_fields_of_a_model() -> None:
    serializer: Any = serializer_for(Outer, optional=frozenset({"value"}))
    fields = serializer().fields
    assert list(fields) == ["id", "status", "names", "wait", "parts", "last", "value"]
    assert fields["status"].help_text == "How it is."
    assert list(fields["status"].choices) == ["good", "bad"]
    assert isinstance(fields["names"].child, serializers.CharField)
    assert isinstance(fields["wait"], serializers.FloatField)
    assert isinstance(fields["parts"].child.fields["at"], serializers.DateTimeField)
    nullable = {name for name, field in fields.items() if field.allow_null}
    assert nullable == {"names", "wait", "last", "value"}
    assert not fields["value"].required
