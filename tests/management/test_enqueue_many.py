"""`taskqueue enqueue-many` enqueues a file of JSON lines, all or none."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from taskqueue.models import Audit, Task
from tests.management.test_taskqueue import refused, run, run_json
from tests.sample.tasks import add, echo, noop

pytestmark = pytest.mark.django_db


def written(tmp_path: Path, *lines: Any) -> Path:
    path = tmp_path / "calls.jsonl"
    text = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def test_tasks_of_several_definitions_are_enqueued_in_their_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"name": add.name, "args": [1]},
        {"name": add.name, "args": [2], "kwargs": {"b": 3}},
        "",
        {"name": noop.name, "queue_name": "mail", "timeout": "5m", "requires": "gpu"},
        {"name": add.name, "args": [4]},
    )
    told = run_json("enqueue-many", path, "--by", "anna", "--reason", "import")
    assert told["enqueued"] == 4
    tasks = list(Task.objects.order_by("id"))
    assert [(task.name, task.args) for task in tasks] == [
        (add.name, [1]), (add.name, [2]), (noop.name, []), (add.name, [4]),
    ]  # fmt: skip
    assert [str(task.id) for task in tasks] == [line["id"] for line in told["tasks"]]
    assert (tasks[1].kwargs, tasks[2].queue_name) == ({"b": 3}, "mail")
    assert tasks[2].options == {"timeout": 300.0}
    assert {line.actor for line in Audit.objects.all()} == {"anna"}


def test_the_standard_input_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"name": echo.name, "args": ["ä"], "unique_key": "one"})
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\n"))
    assert run("enqueue-many", "-") == "1 enqueued\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\n"))
    assert run("enqueue-many", "-") == "0 enqueued, 1 held by others\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "Line 2: Expecting value"),
        ("[]", "Line 2: it must be an object"),
        ('{"args": []}', "Line 2: it must be an object"),
        ({"name": "tests.sample.tasks.ad"}, "Did you mean 'tests.sample.tasks.add'"),
        ({"name": add.name, "args": 1}, "Line 2: args must be a list"),
        ({"name": add.name, "args": ["x"]}, "must be int, not str"),
        ({"name": add.name}, "cannot be called with these arguments"),
        ({"name": add.name, "args": [1], "prority": 5}, "Did you mean 'priority'"),
        ('{"name": "a", "name": "b"}', "the same name twice"),
    ],
)
def test_one_line_that_cannot_be_leaves_all_out(line: Any, message: str, tmp_path: Path) -> None:
    code, said = refused("enqueue-many", written(tmp_path, {"name": noop.name}, line))
    assert (code, message in said) == (2, True), said
    assert not Task.objects.exists()


def test_a_missing_or_empty_file_is_reported(tmp_path: Path) -> None:
    assert "cannot be read" in refused("enqueue-many", tmp_path / "gone")[1]
    assert "has no lines" in refused("enqueue-many", written(tmp_path, ""))[1]
