"""The verbs on schedules: `pause`, `resume`, `run`, `delete`; and `sync`.

`sync` imports the project's tasks.
"""

from __future__ import annotations

import importlib
import os
from argparse import Namespace
from dataclasses import asdict
from traceback import extract_tb
from typing import Any

import django
from django.core.management.base import CommandError

import taskqueue
from taskqueue import schedules
from taskqueue.declarations.discovery import discover_tasks
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.acting import Lines, for_each
from taskqueue.management.cli.cells import one_line
from taskqueue.management.cli.errors import TROUBLE
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    PERSON,
    Subcommand,
    argument,
    group,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import CALL, call_of
from taskqueue.models import Occurrence

# The fields that are shown of a run by hand.
MADE = ("status", "nominal_at", "task_id", "workflow_id")
# Beginnings of paths outside the project.
NOT_OF_PROJECTS = (
    "<frozen ",
    *(os.path.join(package.__path__[0], "") for package in (django, importlib, taskqueue)),
)


def load_tasks() -> None:
    """Import every `tasks` module. Raises CommandError if one cannot be imported."""
    try:
        discover_tasks()
    except Exception as error:  # Code of the project may raise any error.
        frames = [
            frame
            for frame in extract_tb(error.__traceback__)
            if not frame.filename.startswith(NOT_OF_PROJECTS)
        ]
        place = f" [{frames[-1].filename}, line {frames[-1].lineno}]" if frames else ""
        said = f"{type(error).__name__}: {' '.join(str(error).split())}{place}"
        raise CommandError(f"The tasks of the project cannot be imported: {said}") from None


def _action(verb: Verb, action: str) -> Subcommand:
    """Return the subcommand for a verb on schedules.

    Each schedule is reported, also if it refuses.
    """
    is_run = verb.name == "run_now"

    def attempt(name: str, given: dict[str, Any]) -> dict[str, Any]:
        try:
            made = verb.act(name, **given)
        except (TaskQueueError, *TROUBLE):
            raise
        except Exception as error:  # A stored rule may raise any error.
            raise TaskQueueError(f"{type(error).__name__}: {one_line(str(error))}") from error
        if not isinstance(made, Occurrence):
            return {}
        return {name: getattr(made, name) for name in MADE}

    def text_of(line: dict[str, Any]) -> str:
        if "error" in line:
            return f"{line['name']}  {line['error']}"
        if "status" not in line:
            return verb.told(line["name"])
        for noun in ("task", "workflow"):
            if line[f"{noun}_id"] is not None:
                return f"{line['name']}  enqueued: {noun} {line[f'{noun}_id']}"
        return f"{line['name']}  waits until the run before it ends"

    more = (group("what it is given in place of its own arguments", *CALL),) if is_run else ()

    @subcommand(action, verb.help, argument("names", nargs="+", metavar="NAME"), *more, *PERSON)
    def act(flags: Namespace, output: Output) -> None:
        def tell(lines: Lines) -> None:
            output.say(map(text_of, lines), {"action": action, "schedules": lines})

        given = person_of(flags) | call_of(flags)
        if len(given) > len(person_of(flags)):
            load_tasks()  # The definition checks the arguments.
        for_each(flags.names, lambda name: attempt(name, given), output, key="name", tell=tell)

    return act


VERBS = [
    _action(SCHEDULE_VERBS[name], action)
    for name, action in (
        ("pause", "pause"), ("resume", "resume"), ("run_now", "run"), ("delete", "delete")
    )
]  # fmt: skip


@subcommand("sync", "create and update the schedules that the code declares")
def sync(flags: Namespace, output: Output) -> None:
    load_tasks()
    synced = asdict(schedules.sync())
    lines = [f"{done}  {name}" for done, names in synced.items() for name in names]
    output.say(lines or "nothing to change", synced)
    if count := len(synced["refused"]):
        raise CommandError(f"{count} {'was' if count == 1 else 'were'} refused.")
