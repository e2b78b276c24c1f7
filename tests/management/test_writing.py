"""`manage.py taskqueue …` where its output cannot be written, or not in every character."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from taskqueue.management.cli.output import NOT_SAID, legible
from taskqueue.models import Task
from tests.management.test_trouble import SCRIPT, sqlite_at
from tests.sample.tasks import noop

FULL = Path("/dev/full")
pytestmark = pytest.mark.django_db


class Narrow(io.TextIOWrapper):
    """A standard output in an encoding without glyphs."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="latin-1", errors="strict")

    def said(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode("latin-1")  # type: ignore[attr-defined, no-any-return]


class Broken(io.StringIO):
    """One that has no room."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_every_encoding_gets_what_it_has_characters_for() -> None:
    noop.using(unique_key="k").enqueue()
    out = Narrow()
    call_command("taskqueue", "top", "--once", stdout=out)
    assert "________" in out.said(), "as there is nothing in the chart"
    Task.objects.update(name="ünï.日本." + "x" * 80)
    call_command("taskqueue", "list", stdout=out)
    assert r"ünï.\u65e5\u672c.xxx" in out.said()
    assert "xx~  " in out.said()
    assert out.errors == "strict", "left as it was"
    assert legible("“a→▁█\ud800", "ascii") == r'"a>_#\ud800'


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_output_that_cannot_be_written_has_its_own_exit_code(form: str) -> None:
    with pytest.raises(CommandError, match=r"The command was done, but .*: No space left") as told:
        call_command("taskqueue", "enqueue", noop.name, "--format", form, stdout=Broken())
    assert (told.value.returncode, Task.objects.count()) == (NOT_SAID, 1)


def test_the_exit_code_of_a_refusal_goes_before_that_of_unwritten_output() -> None:
    result = noop.enqueue()
    with pytest.raises(CommandError, match="1 was refused") as told:
        call_command("taskqueue", "cancel", result.id, _other(result.id), stdout=Broken())
    assert told.value.returncode == 1
    with pytest.raises(CommandError, match=r"1 (problem|warning)"):
        call_command("taskqueue", "doctor", "--fail-on", "warning", stdout=Broken())


def _other(task_id: object) -> str:
    return str(task_id)[:-1] + ("0" if str(task_id)[-1] != "0" else "1")


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="Linux has it")
@pytest.mark.parametrize("where", ["full", "closed"])
def test_a_process_says_so_in_one_line(where: str, tmp_path: Path) -> None:
    database = sqlite_at(tmp_path / "db")
    _manage(database, "migrate", "-v0")
    with FULL.open("w") as full:
        ended = _manage(
            database, "taskqueue", "list",
            stdout=full, preexec_fn=(lambda: os.close(1)) if where == "closed" else None,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr.count("\n")) == (NOT_SAID, 1), ended.stderr
    assert "cannot be written" in ended.stderr


def _manage(
    database: dict[str, Any], *arguments: str, **options: Any
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT, json.dumps(database), *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, **options)
