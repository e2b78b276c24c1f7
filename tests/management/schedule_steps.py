"""`manage.py taskqueue schedules …` as a test runs it."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError

from taskqueue.management.commands.taskqueue import Command
from taskqueue.models import Schedule

NOOP = "tests.sample.tasks.noop"
ADD = "tests.sample.tasks.add"


def run(*arguments: object) -> str:
    """Return the output of the command."""
    out = StringIO()
    call_command("taskqueue", "schedules", *map(str, arguments), stdout=out, no_color=True)
    return out.getvalue()


def run_json(*arguments: object) -> Any:
    """Return its output for scripts."""
    return json.loads(run(*arguments, "--format", "json"))


def refused(*arguments: object) -> tuple[int, str, str]:
    """The exit code, the message and what was printed before, of a command that is refused."""
    out = StringIO()
    try:
        call_command("taskqueue", "schedules", *map(str, arguments), stdout=out, no_color=True)
    except CommandError as error:
        return error.returncode, str(error), out.getvalue()
    raise AssertionError(f"not refused: {out.getvalue()}")


def exit_code(*arguments: str) -> object:
    """How the process would end for `schedules`."""
    return exit_code_of("schedules", *arguments)


def exit_code_of(*arguments: str) -> object:
    """How the process would end: what `ManagementUtility` does, without closing connections."""
    command = Command()
    command._called_from_command_line = True
    try:
        parser = command.create_parser("manage.py", "taskqueue")
        command.execute(**vars(parser.parse_args(arguments)))
    except CommandError as error:
        return error.returncode
    except SystemExit as end_of_process:
        return end_of_process.code
    return 0


def create(
    name: str = "s",
    *arguments: object,
    task: str = NOOP,
    when: tuple[str, ...] = ("--every", "1h"),
) -> Schedule:
    """A schedule that was created by the command."""
    run("create", name, "--task", task, *when, *arguments)
    return row(name)


def row(name: str = "s") -> Schedule:
    """Its row."""
    return Schedule.objects.get(name=name)
