"""`schedules export` and `import`; flags for jitter, the number of runs, and a run's arguments."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from taskqueue.models import Audit, Schedule, Task
from tests.management.schedule_steps import ADD, NOOP, create, refused, row, run, run_json

pytestmark = pytest.mark.django_db


def test_an_export_can_be_imported_and_a_dry_run_tells_the_differences(tmp_path: Path) -> None:
    create("s", "--jitter", "5m", "--max-runs", "4")
    assert (row("s").jitter, row("s").max_runs) == (timedelta(minutes=5), 4)
    document = json.loads(run("export"))
    assert document == run_json("export")
    file = tmp_path / "schedules.json"
    file.write_text(json.dumps(document))
    assert run("import", file) == "s  unchanged\n"
    document["schedules"][0] |= {"overlap": "allow", "jitter": None}
    document["schedules"].append({**document["schedules"][0], "name": "t"})
    file.write_text(json.dumps(document))
    told = run("import", file, "--dry-run").splitlines()
    assert sorted(told) == [
        '  jitter: 300 to null', '  overlap: "skip" to "allow"', "s  to change", "t  to create",
    ]  # fmt: skip
    assert Schedule.objects.count() == 1
    done = run_json("import", file, "--reason", "moved")
    assert [each["action"] for each in done["schedules"]] == ["change", "create"]
    assert Audit.objects.filter(reason="moved").count() == 2


def test_a_document_that_is_wrong_is_refused_whole(tmp_path: Path) -> None:
    file = tmp_path / "schedules.json"
    file.write_text("{")
    assert "is not valid JSON" in refused("import", file)[1]
    assert "cannot be read" in refused("import", tmp_path / "none.json")[1]
    file.write_text(json.dumps({"schedules": [{"name": "s", "task": NOOP}]}))
    code, said, _ = refused("import", file)
    assert (code, said) == (1, "Nothing was imported. s: rule is missing.")


def test_jitter_and_the_number_of_runs_can_be_taken_back() -> None:
    create("s", "--jitter", "5m", "--max-runs", "4")
    run("edit", "s", "--jitter", "none", "--max-runs", "none")
    assert (row("s").jitter, row("s").max_runs) == (None, None)


def test_a_run_by_hand_may_have_other_arguments() -> None:
    create("sums", "--args", "[1, 2]", task=ADD, when=("--every", "365d"))
    run("run", "sums", "--args", "[3, 4]")
    assert Task.objects.get().args == [3, 4]
    assert "cannot be called" in refused("run", "sums", "--args", "[1, 2, 3]")[1]
