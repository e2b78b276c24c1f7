"""Tables and the diagram of the documentation say what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
from django.core.management import load_command_class
from django.test import override_settings

from taskqueue.conf import DEFAULT_RETENTION, Settings, get_settings
from taskqueue.core.outcomes import TRANSITIONS
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import OPTIONS, Options, options_for
from taskqueue.engine.postgresql import PostgreSQL
from taskqueue.engine.sqlite import SQLite
from taskqueue.models import Lease, Task
from tests.documents import README, page, shown


def test_the_settings_table_names_every_setting_with_its_default() -> None:
    with override_settings(TASKQUEUE={}):
        settings = get_settings()
    said = {row[0].strip("`"): row[1] for row in page("settings.md").table("Settings")}
    assert list(said) == [field.name for field in fields(Settings)]
    assert said.pop("CONCURRENCY") == "the CPUs"
    assert said.pop("RETENTION") == shown(DEFAULT_RETENTION)
    assert said == {name: shown(getattr(settings, name)) for name in said}


def test_the_api_document_names_every_option_of_a_request() -> None:
    text = page("api.md").text
    [options] = re.findall(r"the options that `\.using\(\)` takes: (.*?)\. `run_after`", text)
    assert set(re.findall(r"`(\w+)`", options)) == options_for(Use.USING | Use.REST).keys()
    [changes] = re.findall(r"^PATCH takes (.*?)\. ", text, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", changes)) == options_for(Use.CHANGE).keys()
    [edits] = re.findall(r"While the task waits, it also takes (.*?)\. ", text)
    named = set(re.findall(r"`(\w+)`", edits))
    assert named == {*options_for(Use.EDIT), "args", "kwargs"}


SET_BY_PROJECT = {
    "max_attempts", "max_crashes", "crash_delay", "lease_duration", "ping_interval", "retention",
    "stop_grace", "kill_grace",
}  # fmt: skip
TOLD_IN_WORDS = {
    "run_after": "now", "retry_for": "everything", "give_up_on": "nothing", "sensitive": "nothing",
    "backoff": "`Exponential(base=2, cap=3600)`", "name": "module and function",
    "pool": "the worker's",
    "schedule": "none", "concurrency": "none", "rate": "none", "requires": "nothing",
}  # fmt: skip


def test_the_options_table_names_every_option_with_its_default() -> None:
    options, said = Options(), {}
    for name, default, _ in page("options.md").table("Options of tasks"):
        option = name.strip("` †")
        assert ("†" in name) == (Use.USING not in OPTIONS[option].use), option
        said[option] = default
    assert said.keys() == OPTIONS.keys()
    for option, default in said.items():
        value = getattr(options, option)
        if option in TOLD_IN_WORDS:
            assert default == TOLD_IN_WORDS[option]
        elif option in SET_BY_PROJECT:
            assert (default, value) == ("setting", None)
        else:
            plain = shown(value) if value is None or value == "" else f"`{value}`"
            assert default in (plain, f'`"{value}"`'), option


def test_the_table_of_flags_names_every_flag() -> None:
    parser = load_command_class("taskqueue", "runworker").create_parser("manage.py", "runworker")
    django_s = {
        "--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback",
        "--no-color", "--force-color", "--skip-checks",
    }  # fmt: skip
    flags = {
        flag for action in parser._actions for flag in action.option_strings if flag[:2] == "--"
    }
    said = {
        flag
        for row in page("worker.md").table("The worker")
        for flag in re.findall(r"--[a-z-]+", row[0])
    }
    assert said == flags - django_s


def test_the_diagram_shows_the_table_of_transitions() -> None:
    [diagram] = page("states.md").blocks("mermaid")
    arrows = set(re.findall(r"^ +(\w+) --> (\w+)", diagram, re.MULTILINE))
    assert arrows == {
        (before.value, after.value) for before, found in TRANSITIONS.items() for after in found
    }
    births = set(re.findall(r"\[\*\] --> (\w+)", diagram))
    assert births == {TaskStatus.SCHEDULED.value, TaskStatus.READY.value}


def test_the_readme_shows_what_was_measured_beside_other_queues() -> None:
    comparison = page("comparison.md").text
    tables = [
        [[cell.strip() for cell in line.strip("|").split(" | ")] for line in part.splitlines()]
        for part in re.findall(r"(?:^\|.*\n)+", comparison, re.MULTILINE)
    ]
    measured: dict[tuple[str, str], str] = {}
    for (_, *names), _, *rows in tables:
        for queue, *cells in rows:
            medians = [cell.split(" (")[0] for cell in cells]
            measured |= {(queue, name): cell for name, cell in zip(names, medians, strict=True)}
    [(_, *heads), _, *rows] = _lines_of_table(README.text, "| | taskqueue |")
    queues = {"RQ": "rq", "Huey": "huey (Redis)"}
    columns = {
        "pick-up, median (ms)": "pick-up p50 (ms)",
        "memory, idle (MB, PSS)": "idle: memory (MB, PSS)",
        "measured on": "on",
    }
    for name, *cells in rows:
        for head, cell in zip(heads, cells, strict=True):
            expected = measured[queues.get(head, head), columns.get(name, name)]
            assert cell == _rounded(expected), (head, name)


def _lines_of_table(text: str, beginning: str) -> list[list[str]]:
    """The cells of the lines of the table that begins so."""
    table = text[text.index(beginning) :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()]


def _rounded(figure: str) -> str:
    """As the README rounds rates."""
    return (
        f"{float(figure):.0f}"
        if re.fullmatch(r"\d+\.\d+", figure) and float(figure) > 65
        else figure
    )


@pytest.mark.parametrize(
    ("model", "prefix"), [(Task, "taskqueue_task_"), (Lease, "taskqueue_lease_")]
)
def test_every_index_of_the_hot_tables_is_accounted_for(model: Any, prefix: str) -> None:
    text = page("architecture.md").text
    section = text.split("## What the hot tables carry")[1].split("\n## ")[0]
    said = set(
        re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)))
    )
    assert {index.name.removeprefix(prefix) for index in model._meta.indexes} <= said


def test_the_table_of_the_dialects_names_every_function_with_its_modules() -> None:
    rows = page("architecture.md").table("A statement")
    for place, dialect in enumerate((PostgreSQL, SQLite), 1):
        said = {
            name: row[place].strip("`") for row in rows for name in re.findall(r"`(\w+)`", row[0])
        }
        assert said == {
            name: module.rpartition(".")[2]
            for module, names in dialect.FUNCTIONS.items()
            for name in names.split()
        }


ELSEWHERE = {"return", "big", "quiet", "kill", "map", "si", "fan_out", "enqueue_many"}
"""Plain words among the answers that are no option."""


@pytest.mark.parametrize(
    "system",
    [
        "mscheduler",
        "courier and kue",
        "PowerJob",
        "asynq",
        "machinery",
        "Compared with current systems",
    ],
)
def test_each_feature_of_another_system_is_here_or_left_out_with_its_reason(system: str) -> None:
    known = OPTIONS.keys() | ELSEWHERE | {each.name for each in fields(Settings)} | {"LOGGING"}
    for *feature, here in page("features.md").table(system):
        assert "](" in here or "left out" in here, feature
        # Such as `retention`, `retry_on="same"` and `DEFAULTS`.
        named = set(re.findall(r"`([a-z_]+|[A-Z_]+)(?:=[^`]*)?`", here))
        assert named <= known, feature
