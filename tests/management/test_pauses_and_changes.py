"""Pauses of definitions and of everything, and changes of workers, on the command line."""

from __future__ import annotations

import re

import pytest

from taskqueue.control import pause_all, pause_definition
from taskqueue.models import Audit, Pause, Task, Worker
from taskqueue.monitoring.notices import notices
from taskqueue.monitoring.why import why
from tests.engine.test_workers import registered, row
from tests.management.test_taskqueue import exit_code, refused, run, run_json
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def test_a_definition_is_paused_and_resumed() -> None:
    assert "Definition shop.export paused" in run("pause", "--definition", "shop.export")
    told = run_json("pause", "--definition", "shop.export", "--for", "10m", "--reason", "a bug")
    assert (told["definition"], told["is_paused"], told["pause_reason"]) == (
        "shop.export", True, "a bug"
    )  # fmt: skip
    assert "shop.export" in run("pauses")
    assert "Definition shop.export resumed" in run("resume", "--definition", "shop.export")
    assert refused("resume", "--definition", "shop.export") == (
        1, "Definition 'shop.export' is not paused."
    )  # fmt: skip


def test_everything_is_paused_and_resumed() -> None:
    assert "Everything is paused" in run("pause", "--all", "--by", "anna")
    assert Pause.objects.get().paused_by == "anna"
    assert run_json("pauses")[0]["definition"] is None
    assert "(everything)" in run("pauses")
    assert run_json("resume", "--all")["is_paused"] is False
    assert refused("resume", "--all") == (1, "Not everything is paused.")


@pytest.mark.parametrize(
    "arguments",
    [
        ["pause"],
        ["pause", "mail", "--all"],
        ["pause", "--all", "--definition", "a"],
        ["pause", "--definition", "two words"],
        ["pause", "--definition", ""],
        ["pause", "--all", "--for", "0"],
        ["resume", "--all", "--worker", "w1"],
        ["workers", "change"],
        ["workers", "change", "w1"],
        ["workers", "change", "w1", "--concurrency", "0"],
        ["workers", "change", "w1", "--concurrency", "1001"],
        ["workers", "change", "w1", "--queues", "mail@0"],
        ["workers", "change", "w1", "--definition-slots", "shop.export"],
    ],
)
def test_invalid_pauses_and_changes_exit_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    registered()
    assert exit_code(arguments) == 2
    assert not Audit.objects.exists()
    assert not Pause.objects.exists()


def test_workers_are_changed() -> None:
    registered("a")
    registered("b")
    told = run("workers", "change", "a", "b", "--concurrency", "2", "--queues", "mail=3@2")
    assert told == "a  asked to change\nb  asked to change\n"
    assert row("a").wanted == row("b").wanted == {"concurrency": 2, "queues": "mail=3@2"}
    run("workers", "change", "b", "--strict")
    assert row("b").wanted == {"concurrency": 2, "queues": "mail=3@2", "strict": True}
    run("workers", "change", "b", "--no-strict", "--queues", "")
    assert row("b").wanted == {"concurrency": 2, "queues": "", "strict": False}
    assert refused("workers", "change", "a", "--strict", "--queues", "")[0] == 1
    assert refused("workers", "change", "c", "--concurrency", "2")[0] == 1
    assert "concurrency" in run("workers")
    assert run_json("workers", "list")[0]["wanted"] == {"concurrency": 2, "queues": "mail=3@2"}


def test_an_unknown_name_is_reported_once(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    paused = run_json("pause", "--definition", f"{noop.name}p")
    assert paused["is_paused"]
    told = capsys.readouterr().err
    assert told.strip() == paused["hint"]
    assert f"Did you mean {noop.name!r}?" in told
    run("pause", "defaul")
    assert "Did you mean 'default'?" in capsys.readouterr().err
    assert run_json("pause", "default")["hint"] == ""
    run("pause", "--definition", noop.name)
    run("pause", "--all")
    assert not capsys.readouterr().err
    run("queues", "limit", "defaul", "--concurrency", "2")
    assert "Did you mean 'default'?" in capsys.readouterr().err
    assert not caplog.records


def test_pauses_are_noticed_and_told_by_why() -> None:
    task = noop.enqueue()
    registered()
    pause_definition(noop.name, by="anna", reason="a bug")
    pause_all(by="ben", reason="an incident", until=600)
    first, second = [each for each in notices() if each.code.endswith("paused")]
    assert (first.code, first.level) == ("all_paused", "error")
    assert "ben" in first.sentence
    assert "an incident" in first.sentence
    assert (second.code, second.subject) == ("definition_paused", noop.name)
    codes = [reason.code for reason in why(Task.objects.get(id=task.id))]
    assert codes[:2] == ["all_paused", "definition_paused"]
    assert "Everything is paused" in run("top", "--once")
    assert "resume --all" in run("doctor", "--fail-on", "never")


def test_the_names_of_the_doctors_checks_stand_apart_from_what_they_say() -> None:
    said = run("doctor", "--fail-on", "never")
    assert re.search(r"^info     examinations No worker has run the doctor", said, re.MULTILINE)


def test_a_worker_that_is_to_change_says_so_in_top() -> None:
    registered()
    Worker.objects.update(seen_at=row().started_at)
    run("workers", "change", "w1", "--concurrency", "2")
    assert "changing" in run("top", "--once")
