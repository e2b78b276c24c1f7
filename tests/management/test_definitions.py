"""`tasks`, `export`, `queues show`, `operations start`: and how durations are written."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest

from taskqueue import Fixed, control
from taskqueue.core.durations import duration_as_text, duration_from_text
from taskqueue.models import Audit, Operation, Queue, Task
from tests.management.test_taskqueue import refused, run, run_json
from tests.sample.tasks import add, log_in, noop

pytestmark = pytest.mark.django_db


def test_definitions_are_listed_by_a_pattern_with_pauses() -> None:
    control.pause_definition(add.name, by="anna")
    found = {each["name"]: each for each in run_json("tasks", "list", "tests.sample.tasks.*")}
    assert found[add.name]["is_paused"]
    assert not found[noop.name]["is_paused"]
    assert found[add.name]["queue_name"] == "default"
    assert add.name in run("tasks")
    assert run_json("tasks", "list", "no.such.*") == []


def test_one_definition_is_shown_with_options_and_arguments() -> None:
    shown = run_json("tasks", "show", log_in.name)
    assert shown["options"] == {"sensitive": ["password"]}
    assert shown["arguments"]["properties"]["kwargs"]["required"] == ["user", "password"]
    assert shown["doc"] == "Has a secret."
    code, said = refused("tasks", "show", "tests.sample.tasks.ad")
    assert code == 1
    assert f"Did you mean '{add.name}'?" in said


def test_tasks_are_exported_as_lines_and_for_spreadsheets() -> None:
    first, second = add.enqueue(1), log_in.enqueue("=cmd()", password="very secret")
    lines = list(map(json.loads, run("export", "--all").splitlines()))
    assert [line["id"] for line in lines] == [str(second.id), str(first.id)]
    assert lines[0]["kwargs"] == {"password": "[redacted]"}
    text = run("export", "--query", f"name:{log_in.name}", "--as", "csv")
    (row,) = csv.DictReader(StringIO(text))
    assert row["id"] == str(second.id)
    assert "very secret" not in text
    assert run("export", "--all", "--limit", "1").count("\n") == 1
    assert refused("export")[0] == 2


def test_an_export_goes_through_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskqueue.management.cli.export.BATCH", 2)
    add.enqueue_many([((number,), {}) for number in range(5)])
    assert run("export", "--query", "status:ready").count("\n") == 5


def test_one_queue_is_shown_or_the_nearest_one_named() -> None:
    noop.using(queue_name="mail").enqueue()
    assert run_json("queues", "show", "mail")["waiting"] == 1
    code, said = refused("queues", "show", "mial")
    assert code == 1
    assert "Did you mean 'mail'?" in said


@pytest.mark.parametrize(
    ("verb", "flags", "arguments"),
    [
        ("retry", [], {}),
        ("update", ["--set", "priority=7", "--set", "timeout=250ms"], {"changes"}),
        ("reschedule", ["--in", "10m"], {"run_after"}),
    ],
)
def test_an_operation_is_started(verb: str, flags: list[str], arguments: Any) -> None:
    noop.enqueue()
    told = run_json(
        "operations", "start", verb, "--query", f"name:{noop.name}", *flags, "--by", "anna"
    )
    operation = Operation.objects.get(id=told["id"])
    assert (operation.verb, set(operation.arguments)) == (verb, set(arguments))
    assert (operation.requested_by, operation.query) == ("anna", f"name:{noop.name}")
    assert Audit.objects.filter(noun="operation", verb="start", actor="anna").exists()


def test_an_operation_without_what_its_verb_needs_is_refused() -> None:
    assert "update takes --set." in refused("operations", "start", "update", "--all")[1]
    said = refused("operations", "start", "retry", "--all", "--in", "5m")[1]
    assert "retry takes no --at, --in or --set." in said
    assert refused("operations", "start", "retry")[0] == 2
    assert not Operation.objects.exists()


def test_an_option_with_a_policy_is_set_by_text() -> None:
    told = run_json("enqueue", add.name, "--args", "[1]", "--set", "backoff=fixed(1.5)")
    (options,) = Task.objects.filter(id=told["id"]).values_list("options", flat=True)
    assert options["backoff"] == Fixed(1.5).snapshot()


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("90", 90), ("1.5m", 90), ("2h", 7200), (" 1w ", 604800)]
)
def test_durations_are_written_alike(text: str, seconds: float) -> None:
    assert duration_from_text(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["0s", "250ms", "1s", "90s", "10m", "36h", "3d", "2w"])
def test_a_duration_is_shown_as_typed(text: str) -> None:
    assert duration_as_text(duration_from_text(text)) == text


def test_one_queue_is_shown_with_its_tasks_and_deleted_when_it_is_empty() -> None:
    result = noop.using(queue_name="mail").enqueue()
    assert "ready" in run("queues", "show", "mail")
    (ready,) = (each for each in run_json("queues", "show", "mail")["tasks"] if each["count"])
    assert (ready["status"], ready["count"]) == ("ready", 1)
    Queue.objects.create(name="mail")
    assert "has 1 task that has not finished" in refused("queues", "delete", "mail")[1]
    result.cancel()
    assert run("queues", "delete", "mail", "--by", "ada") == "Queue mail deleted.\n"
    assert refused("queues", "delete", "mail")[0] == 1
