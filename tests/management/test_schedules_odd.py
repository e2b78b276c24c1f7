"""`manage.py taskqueue schedules …` with odd rows, and with a project that cannot be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from taskqueue import rules
from taskqueue.models import Schedule
from taskqueue.rules import Cron, Every, Once, Rule
from tests.management.schedule_steps import create, exit_code, refused, row, run

BERLIN = ("--tz", "Europe/Berlin")
PROJECT = """
import gc
import json
import os
import sys
from importlib import import_module
from pkgutil import walk_packages
import django
from django.conf import settings
from django.core.management import execute_from_command_line
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "taskqueue", "shop"],
    USE_TZ=True,
)
django.setup()
for name in ("taskqueue.management.cli", "taskqueue.engine"):
    for module in walk_packages(import_module(name).__path__, name + "."):
        import_module(module.name)
assert "shop.tasks" not in sys.modules
gc.freeze()
for line in sys.stdin:
    child = os.fork()
    if not child:
        for number, name in ((1, "said"), (2, "error")):
            with open(name, "w") as file:
                os.dup2(file.fileno(), number)
        execute_from_command_line(["manage.py", *json.loads(line)])
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Run each command in a copy of a process that has loaded all but the project's tasks."""
BROKEN = "1 / 0"
CREATE = ("create", "s", "--task", "shop.tasks.noop", "--every", "1h")


# Times without an offset


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (["--once", "2100-06-01 09:00"], Once(datetime(2100, 6, 1, 13, tzinfo=UTC))),
        (["--once", "2100-06-01 09:00", *BERLIN], Once(datetime(2100, 6, 1, 7, tzinfo=UTC))),
        (["--once", "2100-10-31 02:30", *BERLIN], Once(datetime(2100, 10, 31, 0, 30, tzinfo=UTC))),
        (["--once", "2100-06-01 09:00Z", *BERLIN], Once(datetime(2100, 6, 1, 9, tzinfo=UTC))),
        (
            ["--cron", "0 6 * * *", *BERLIN, "--start", "2100-06-01 09:00"],
            Cron("0 6 * * *", "Europe/Berlin", start=datetime(2100, 6, 1, 7, tzinfo=UTC)),
        ),
        (
            ["--cron", "0 6 * * *", "--end", "2100-06-01 09:00"],
            Cron("0 6 * * *", end=datetime(2100, 6, 1, 9, tzinfo=UTC)),
        ),
        (
            ["--every", "1h", "--end", "2100-06-01 09:00"],
            Every(hours=1, end=datetime(2100, 6, 1, 13, tzinfo=UTC)),
        ),
    ],
)
def test_a_time_without_an_offset_is_of_the_zone_of_the_rule(flags: list[str], rule: Rule) -> None:
    with override_settings(TIME_ZONE="America/New_York"):
        create(when=tuple(flags))
    assert rules.from_json(row().rule) == rule


@pytest.mark.django_db
def test_an_edit_reads_a_time_in_the_zone_that_the_rule_has_then() -> None:
    create(when=("--cron", "0 6 * * *", *BERLIN))
    run("edit", "s", "--end", "2100-06-01 09:00")
    assert row().rule["end"] == "2100-06-01T07:00:00+00:00"
    run("edit", "s", "--end", "2100-06-01 09:00", "--tz", "Asia/Shanghai")
    assert row().rule["end"] == "2100-06-01T01:00:00+00:00"


# Projects that cannot be imported


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Any]:
    """Run a command of a project whose tasks are these lines."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "tasks.py").write_text(BROKEN)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-B", "-c", PROJECT],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as project:  # fmt: skip
        assert project.stdin is not None
        assert project.stdout is not None
        asked, answers = project.stdin, project.stdout

        def command(tasks: str, *arguments: str) -> tuple[int, str, str]:
            (tmp_path / "shop" / "tasks.py").write_text(tasks)
            asked.write(json.dumps(arguments) + "\n")
            asked.flush()
            code = int(answers.readline())
            said, error = ((tmp_path / name).read_text() for name in ("said", "error"))
            return code, said, error.rstrip("\n")

        yield command


GOOD = "from taskqueue import task\n@task(sensitive=['a'])\ndef noop(a=1): pass\n"


@pytest.mark.slow
def test_tasks_that_cannot_be_imported_are_reported_in_one_line(shop: Any) -> None:
    assert shop(GOOD, "migrate", "-v0")[0] == 0
    assert shop(GOOD, "taskqueue", "schedules", *CREATE, "--args", '["hush"]')[0] == 0
    broken = {
        "import nowhere": "ModuleNotFoundError: No module named 'nowhere'",
        "def": "SyntaxError",
        BROKEN: "ZeroDivisionError: division by zero",
        GOOD.replace("sensitive", "sensetive"): "Did you mean",
    }
    for tasks, said in broken.items():
        for action in (("sync",), (*CREATE, "--priority", "1"), ("edit", "s", "--disable")):
            code, _, error = shop(tasks, "taskqueue", "schedules", *action)
            assert (code, "\n" in error, "Traceback" in error) == (1, False, False), error
            assert "cannot be imported" in error
            assert said in error
            assert "tasks.py" in error


@pytest.mark.slow
def test_commands_that_need_no_tasks_work_with_broken_code_and_show_no_arguments(shop: Any) -> None:
    assert shop(GOOD, "migrate", "-v0")[0] == 0
    assert shop(GOOD, "taskqueue", "schedules", *CREATE, "--args", '["hush"]')[0] == 0
    for action in (("list", "--format", "json"), ("list",), ("show", "s"), ("preview", "s"),
                   ("history", "s"), ("pause", "s"), ("resume", "s")):  # fmt: skip
        code, said, error = shop(BROKEN, "taskqueue", "schedules", *action)
        assert (code, error) == (0, ""), (action, error)
        assert "hush" not in said


# Rules that fail


@pytest.mark.django_db
@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "every", "interval": -1},
        {"kind": "cron", "expression": "61 * * * *", "tz": "No/Where"},
        {"kind": ["cron"]},
        [],
        "x",
    ],
)
def test_a_rule_that_makes_no_sense_is_shown_and_replaced(rule: Any) -> None:
    create()
    Schedule.objects.update(rule=rule)
    for action in ("list", "show s", "history s", "pause s"):
        assert "s" in run(*action.split())
    assert exit_code("edit", "s", "--step", "5m") == 2
    run("edit", "s", "--every", "2h")
    assert rules.from_json(row().rule) == Every(hours=2)


@pytest.mark.django_db
def test_a_rule_that_fails_when_it_is_read_keeps_nobody_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create("odd", when=("--every", "7h"))
    create("other")
    times = Every._times

    def fail(rule: Every, after: datetime) -> Any:
        if rule.interval.total_seconds() == 7 * 3600:
            raise ZeroDivisionError("odd")
        return times(rule, after)

    monkeypatch.setattr(Every, "_times", fail)
    for action in ("list", "show odd", "history odd"):
        assert "odd" in run(*action.split())
    assert refused("preview", "odd")[:2] == (1, "The rule failed: ZeroDivisionError: odd")
    exit_code("run", "odd", "other")
    assert row("other").last_nominal_at is not None


@pytest.mark.django_db
def test_the_last_moment_of_the_calendar_is_shown_wherever_the_project_is() -> None:
    with override_settings(TIME_ZONE="Asia/Shanghai"):
        create(when=("--once", "9999-12-31 23:59:59Z"))
        for action in ("list", "show s", "preview s"):
            assert "9999-12-31 23:59:59" in run(*action.split())
