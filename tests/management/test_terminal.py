"""What reaches the terminal of who types `manage.py taskqueue …`, and what ends it early."""

from __future__ import annotations

import sys
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.management.cli.tasks import listed
from taskqueue.management.commands.taskqueue import Command
from taskqueue.models import Task
from taskqueue.results import TaskResult
from tests.engine.steps import claim_one, end
from tests.management.test_one_by_one import tried
from tests.management.test_taskqueue import exit_code, refused, run
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
BYTES = "caf\udce9"


def test_an_error_cannot_steer_the_terminal() -> None:
    kept = ["enqueue", noop.name, "--unique-key", "k", "--set", "unique_for=kept"]
    run(*kept)
    end(claim_one(), OutcomeKind.FAILED, error_class="E", error_message="\x1b[2Jgone\nfor good")
    code, said, told = tried(*kept, "--wait", "5")
    assert (code, "failed with E: �[2Jgone for good." in said) == (1, True), said
    assert "\x1b" not in said + told


def test_nor_can_an_id_that_is_none() -> None:
    assert "\x1b" not in "".join(map(str, tried("cancel", "\x1b[2J", "x")))


def test_who_leaves_the_waiting_is_told_which_task_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TaskResult, "wait", interrupted)
    out = StringIO()
    with pytest.raises(KeyboardInterrupt):
        call_command("taskqueue", "enqueue", noop.name, "--wait", "5", stdout=out)
    assert out.getvalue() == f"{Task.objects.get().id}  enqueued: ready\n"


def test_an_interrupt_is_one_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(
        "django.core.management.base.connections", SimpleNamespace(close_all=lambda: None)
    )
    monkeypatch.setitem(listed.__dict__, "run", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        Command().run_from_argv(["manage.py", "taskqueue", "list"])
    # As Python does with what nobody caught; it then ends by the signal.
    sys.excepthook(raised.type, raised.value, raised.tb)
    assert capsys.readouterr() == ("", "Interrupted.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["workers", "--host", BYTES],
        ["workers", "--queue", BYTES],
        ["stats", "--queue", BYTES],
        ["stats", "--name", BYTES],
        ["list", BYTES],
        ["list", "--name", BYTES],
        ["list", "--query", f"name:{BYTES}"],
        ["cancel", BYTES],
        ["pause", BYTES],
        ["stop", "--worker", BYTES],
        ["schedules", "pause", BYTES],
        ["schedules", "create", BYTES, "--task", noop.name, "--every", "1h"],
        ["enqueue", noop.name, "--reason", BYTES],
    ],
)
def test_bytes_that_are_not_utf_8_are_refused_alike(arguments: list[str]) -> None:
    code, said = refused(*arguments)
    assert (code, "\\udce9' contains bytes that are not UTF-8." in said) == (2, True), said
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["reschedule", "x", "--in", "400000w"],
        ["enqueue", noop.name, "--in", "400000w"],
        ["pause", "mail", "--for", "400000w"],
        ["list", "--after", "400000w"],
    ],
)
def test_a_duration_that_is_too_long_is_said_to_be_so(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(arguments) == 2
    assert "'400000w' is too long: more than 100 years." in capsys.readouterr().err
