"""`schedules sync`: bring what the code declares to the database; import the project's tasks."""

from __future__ import annotations

import importlib
import os
from argparse import Namespace
from dataclasses import asdict
from traceback import extract_tb
from types import TracebackType

import django
from django.core.management.base import CommandError

import taskqueue
from taskqueue import schedules
from taskqueue.declarations.discovery import discover_tasks
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output

NOT_OF_PROJECTS = (
    "<frozen ",
    *(os.path.join(package.__path__[0], "") for package in (django, importlib, taskqueue)),
)
"""Beginnings of paths outside the project."""


def load_tasks() -> None:
    """Import every `tasks` module. Raises CommandError where one cannot be imported."""
    try:
        discover_tasks()
    except Exception as error:  # Code of the project: anything may come of it.
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise CommandError(
            f"The tasks of the project cannot be imported: {said}{_place(error.__traceback__)}"
        ) from None


def _place(traceback: TracebackType | None) -> str:
    """Return the last line of the project in the traceback; empty for none."""
    frames = [each for each in extract_tb(traceback) if not _is_foreign(each.filename)]
    return f" [{frames[-1].filename}, line {frames[-1].lineno}]" if frames else ""


def _is_foreign(filename: str) -> bool:
    return filename.startswith(NOT_OF_PROJECTS)


def _sync(flags: Namespace, output: Output) -> None:
    load_tasks()
    synced = asdict(schedules.sync())
    lines = [f"{what}  {each}" for what, found in synced.items() for each in found]
    output.say("\n".join(lines) or "nothing to change", synced)
    if count := len(synced["refused"]):
        raise CommandError(f"{count} {'was' if count == 1 else 'were'} refused.")


SYNC = Subcommand(
    name="sync",
    help="create and update the schedules that the code declares",
    add_arguments=lambda parser: None,
    run=_sync,
)
