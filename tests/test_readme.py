"""README.md says what the code does: its examples run, its tables and its diagram match."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path

import pytest
from django.core.management import load_command_class
from django.test import override_settings

from taskqueue import definitions
from taskqueue.conf import DEFAULT_RETENTION, Settings, get_settings
from taskqueue.core.outcomes import TRANSITIONS
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.checks import check_settings
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import OPTIONS, Options, options_for
from taskqueue.declarations.workflows.workflow import workflows
from taskqueue.models import Schedule
from tests import readme
from tests.conftest import StartWorker
from tests.worker_process import wait_until

DEFINITION, CALL, *OTHERS = readme.blocks("python")
SETTINGS = "from tests.settings import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'shop']\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An app with the README's tasks; the environment in which a worker finds it."""
    bodies = "\n\n".join(block for block in OTHERS if "@task" in block)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "tasks.py").write_text(f"{DEFINITION}\n\n{bodies}")
    (tmp_path / "shop_settings.py").write_text(SETTINGS)
    monkeypatch.syspath_prepend(tmp_path)
    registered = dict(definitions.registry._definitions)
    monkeypatch.setattr(definitions.registry, "_definitions", registered)
    monkeypatch.setattr(workflows, "_definitions", dict(workflows._definitions))
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "shop_settings"}


@pytest.mark.slow
def test_the_examples_run(shop: dict[str, str], start_worker: StartWorker) -> None:
    start_worker(env=shop)
    names: dict[str, object] = {}
    exec(CALL, names)
    calls = next(block for block in OTHERS if "enqueue_many" in block)
    exec(calls, names)
    exec(next(block for block in OTHERS if "close_day.enqueue" in block), names)
    from shop.tasks import (  # type: ignore[import-not-found]
        import_rows,
        send_receipt,
    )

    result = send_receipt.get_result(names["result"].id)  # type: ignore[attr-defined]
    assert result.progress == (100.0, "rendered")
    imported = import_rows.enqueue("stock.csv", rows=3).wait(timeout=60)
    assert imported.return_value == 3
    assert imported.progress == (100.0, "row 3 of stock.csv")
    wait_until(lambda: Schedule.objects.count() == 3, what="the declared schedules")
    exec(next(block for block in OTHERS if "schedules.create" in block), {})
    names_of_rows = Schedule.objects.order_by("name").values_list("name", flat=True)
    assert list(names_of_rows) == ["shop.tasks.open_shop", "stock-eu", "stock-us"]


def test_every_block_of_python_is_python() -> None:
    for block in readme.blocks("python"):
        compile(block, "README.md", "exec")


def test_the_sqlite_options_satisfy_the_checks() -> None:
    names: dict[str, object] = {}
    exec(next(block for block in OTHERS if "sqlite3" in block), names)
    from django.db import connections

    options = names["DATABASES"]["default"]["OPTIONS"]  # type: ignore[index]
    before = connections["default"].settings_dict
    connections["default"].settings_dict = {**before, "OPTIONS": options}
    try:
        assert check_settings() == []
    finally:
        connections["default"].settings_dict = before


def test_the_settings_table_names_every_setting_with_its_default() -> None:
    with override_settings(TASKQUEUE={}):
        settings = get_settings()
    said = {row[0].strip("`"): row[1] for row in readme.table("Settings")}
    assert list(said) == [field.name for field in fields(Settings)]
    assert said.pop("CONCURRENCY") == "the CPUs"
    assert said.pop("RETENTION") == readme.shown(DEFAULT_RETENTION)
    assert said == {name: readme.shown(getattr(settings, name)) for name in said}


def test_the_api_document_names_every_option_of_a_request() -> None:
    text = (readme.ROOT / "docs" / "api.md").read_text()
    [options] = re.findall(r"the options that `\.using\(\)` takes: (.*?)\. `run_after`", text)
    assert set(re.findall(r"`(\w+)`", options)) == options_for(Use.USING | Use.REST).keys()
    [changes] = re.findall(r"^PATCH takes (.*?)\. ", text, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", changes)) == options_for(Use.CHANGE).keys()


SET_BY_PROJECT = {
    "max_attempts", "max_crashes", "crash_delay", "lease_duration", "ping_interval", "retention",
    "stop_grace", "kill_grace",
}  # fmt: skip
TOLD_IN_WORDS = {
    "run_after": "now", "retry_for": "everything", "give_up_on": "nothing", "sensitive": "nothing",
    "backoff": "`Exponential(base=2, cap=3600)`", "name": "module and function",
    "schedule": "none", "concurrency": "none", "rate": "none", "requires": "nothing",
}  # fmt: skip


def test_the_options_table_names_every_option_with_its_default() -> None:
    options, said = Options(), {}
    for name, default, _ in readme.table("Options"):
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
            plain = readme.shown(value) if value is None or value == "" else f"`{value}`"
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
    said = {flag for row in readme.table("The worker") for flag in re.findall(r"--[a-z-]+", row[0])}
    assert said == flags - django_s


def test_the_diagram_shows_the_table_of_transitions() -> None:
    [diagram] = readme.blocks("mermaid")
    arrows = set(re.findall(r"^ +(\w+) --> (\w+)", diagram, re.MULTILINE))
    assert arrows == {
        (before.value, after.value) for before, found in TRANSITIONS.items() for after in found
    }
    births = set(re.findall(r"\[\*\] --> (\w+)", diagram))
    assert births == {TaskStatus.SCHEDULED.value, TaskStatus.READY.value}


def test_every_document_that_the_readme_names_is_there() -> None:
    for path in re.findall(r"\]\(([^)]+)\)", readme.TEXT):
        assert (readme.ROOT / path).is_file(), path
