"""`manage.py taskqueue schedules …`: one clear line and an exit code for what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskqueue.models import Audit, Schedule
from tests.management.schedule_steps import NOOP, create, exit_code, refused
from tests.management.test_trouble import manage, sqlite_at

NEW = ["create", "new", "--task", NOOP]
DEEP = "[" * 200_000


@pytest.mark.django_db
@pytest.mark.parametrize(
    "arguments",
    [
        ["dance"],
        ["show"],
        ["show", "s", "t"],
        ["create"],
        ["create", "new", "--every", "1h"],
        NEW,
        [*NEW, "--every", "1h", "--cron", "0 6 * * *"],
        [*NEW, "--every", "soon"],
        [*NEW, "--every", "0.01"],
        [*NEW, "--every", "9000000d"],
        [*NEW, "--every", "1h", "--tz", "UTC"],
        [*NEW, "--every", "1h", "--step", "1m"],
        [*NEW, "--cron", "61 * * * *"],
        [*NEW, "--cron", "0 0 30 2 *"],
        [*NEW, "--cron", ""],
        [*NEW, "--cron", "0 6 * * *", "--tz", "Europe/Berln"],
        [*NEW, "--cron", "0 6 * * *", "--days", "mon"],
        [*NEW, "--daily", "09:00-17:30"],
        [*NEW, "--daily", "09:00", "--step", "30m"],
        [*NEW, "--daily", "9-17", "--step", "30m"],
        [*NEW, "--daily", "09:00-17:30", "--step", "2d"],
        [*NEW, "--daily", "09:00-17:30", "--step", "30m", "--days", "funday"],
        [*NEW, "--once", "tomorrow"],
        [*NEW, "--once", "2001-01-01T00:00+00:00"],
        [*NEW, "--once", "2100-03-28 02:30", "--tz", "Europe/Berlin"],
        [*NEW, "--once", "2100-01-01 00:00", "--tz", "Europe/Berln"],
        [*NEW, "--cron", "0 6 * * *", "--tz", "Europe/Berlin", "--start", "2100-03-28 02:30"],
        [*NEW, "--cron", "0 6 * * *", "--tz", "Europe/Berln", "--start", "2100-03-28 12:30"],
        [*NEW, "--once", "0001-01-01T00:00+14:00"],
        [*NEW, "--once", "9999-12-31T23:00", "--tz", "America/Los_Angeles"],
        [*NEW, "--once", "2100-01-01T00:00+00:00", "--start", "2100-01-01T00:00+00:00"],
        [*NEW, "--every", "1h", "--end", "2001-01-01T00:00+00:00"],
        [*NEW, "--every", "1h", "--args", "{}"],
        [*NEW, "--every", "1h", "--args", "[1]"],
        [*NEW, "--every", "1h", "--args", DEEP],
        [*NEW, "--every", "1h", "--kwargs", "nonsense"],
        [*NEW, "--every", "1h", "--option", "max_attempts"],
        [*NEW, "--every", "1h", "--option", "max_atempts=5"],
        [*NEW, "--every", "1h", "--option", "run_after=5"],
        [*NEW, "--every", "1h", "--queue", "mail", "--option", "queue_name=mail"],
        [*NEW, "--every", "1h", "--priority", "high"],
        [*NEW, "--every", "1h", "--missed", "some"],
        [*NEW, "--every", "1h", "--missed", "window"],
        [*NEW, "--every", "1h", "--missed-window", "1h"],
        [*NEW, "--every", "1h", "--pause-after-failures", "0"],
        [*NEW, "--every", "1h", "--pause-after-failures", "9" * 5000],
        ["create", "s", "--task", NOOP, "--cron", "61 * * * *"],
        ["create", "two/words", "--task", NOOP, "--every", "1h"],
        ["edit", "s"],
        ["edit", "s", "--step", "5m"],
        ["edit", "s", "--tz", "UTC"],
        ["edit", "s", "--daily", "09:00-17:30"],
        ["edit", "s", "--unset-option", "priority"],
        ["edit", "s", "--enable", "--disable"],
        ["pause"],
        ["preview"],
        ["preview", "s", "--every", "1h"],
        ["preview", "s", "--count", "0"],
        ["preview", "--every", "1h", "--count", "1001"],
        ["history", "s", "--count", "many"],
    ],
)
def test_an_invalid_change_of_a_schedule_exits_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = create()
    assert exit_code(*arguments) == 2
    assert Schedule.objects.get().changed_at == before.changed_at
    assert Audit.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "t"],
        ["edit", "t", "--every", "1h"],
        ["preview", "t"],
        ["history", "t"],
        ["pause", "t"],
        ["resume", "s"],
        ["run", "t"],
        ["delete", "t", "u"],
        ["show", "nul\0"],
        ["create", "new", "--task", "tests.sample.tasks.nop", "--every", "1h"],
        ["create", "s", "--task", NOOP, "--every", "2h"],
        ["edit", "s", "--task", "nobody.knows.it"],
    ],
)
def test_a_missing_schedule_or_a_refusal_exits_with_1(arguments: list[str]) -> None:
    create()
    assert exit_code(*arguments) == 1
    assert Audit.objects.count() == 1


@pytest.mark.django_db
def test_errors_say_what_to_do() -> None:
    create()
    told = [
        ([*NEW, "--cron", "0 6 * * *", "--tz", "Europe/Berln"], "Did you mean 'Europe/Berlin'?"),
        (["create", "n", "--task", f"{NOOP}p", "--every", "1h"], f"Did you mean '{NOOP}'?"),
        ([*NEW, "--every", "1h", "--option", "max_atempts=5"], "Did you mean 'max_attempts'?"),
        ([*NEW, "--every", "0.04"], "a rule finer than 50 milliseconds is refused"),
        ([*NEW, "--cron", "0 0 30 2 *"], "never fires"),
        (["create", "s", "--task", NOOP, "--every", "1h"], "There is a schedule 's' already."),
        (["edit", "s", "--unset-option", "priority"], "it has: none."),
        (
            [*NEW, "--once", "2100-03-28 02:30", "--tz", "Europe/Berlin"],
            "2100-03-28 02:30:00 does not exist in Europe/Berlin",
        ),
        (["show", "ss"], "Did you mean 's'?"),
    ]
    for arguments, said in told:
        message = refused(*arguments)[1]
        assert said in message
        assert "\n" not in message


@pytest.mark.django_db
def test_a_declared_schedule_is_edited_in_code_only() -> None:
    create()
    Schedule.objects.update(source="code")
    for action in (["edit", "s", "--every", "2h"], ["delete", "s"]):
        code, said, _ = refused(*action)
        assert (code, "is declared in code" in said) == (1, True)


def test_a_rule_can_be_tried_before_there_is_a_database(tmp_path: Path) -> None:
    nowhere = sqlite_at(tmp_path / "nowhere" / "db")
    assert manage(nowhere, "taskqueue", "schedules", "preview", "--cron", "0 6 * * *") == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "s"],
        ["edit", "s", "--disable"],
        ["pause", "s"],
        ["preview", "s"],
        ["history", "s"],
    ],
)
def test_a_database_without_tables_is_said_to_want_a_migration(
    arguments: list[str], tmp_path: Path
) -> None:
    code, said = manage(sqlite_at(tmp_path / "db"), "taskqueue", "schedules", *arguments)
    assert (code, "Run manage.py migrate" in said, "\n" in said) == (1, True, False), said
