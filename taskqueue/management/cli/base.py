"""Subcommands of `manage.py taskqueue`: their description, and errors as exit codes."""

from __future__ import annotations

import getpass
import os
import re
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError

from taskqueue.engine.connections import project_connection
from taskqueue.engine.transient_errors import is_busy
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.output import Output, told
from taskqueue.models import Task

USAGE = 2
"""The exit code for what cannot be meant; 1 is for what was refused, or is not there."""
OF_DJANGO = frozenset({"settings", "pythonpath"})
SURROGATE = re.compile("[\ud800-\udfff]")
"""As which Python keeps a byte of the command line that it cannot decode."""


@dataclass(frozen=True, kw_only=True)
class Subcommand:
    """One of `manage.py taskqueue`."""

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Output], None]
    example: str = ""
    """What one might type behind `manage.py taskqueue`."""


def add_actions(parser: ArgumentParser, actions: Sequence[Subcommand]) -> None:
    """Add a subparser for each action of a subcommand."""
    chosen = parser.add_subparsers(dest="action", metavar="action", help="default: list")
    for action in actions:
        own = chosen.add_parser(action.name, help=action.help, description=action.help)
        action.add_arguments(own)
        # Without a default of its own: it would undo a --format that stands before the action.
        own.add_argument("--format", choices=("text", "json"), default=SUPPRESS)
        # The default that is set last wins, and that is the inner parser's.
        own.set_defaults(run=action.run)


def usage_error(message: str) -> CommandError:
    """What is raised for flags that do not go together."""
    return CommandError(message, returncode=USAGE)


@contextmanager
def refusals_reported() -> Iterator[None]:
    """Let a script see by the exit code what an error means."""
    try:
        yield
    except LookupError as error:
        if not isinstance(error, TaskQueueError):
            raise
        raise CommandError(str(error)) from None
    except ValueError as error:  # InvalidTask and InvalidArguments are such.
        raise usage_error(str(error)) from None
    except TaskQueueError as error:
        raise CommandError(str(error)) from None
    except TROUBLE as error:
        raise CommandError(sentence_of(error)) from None


@contextmanager
def errors_on_one_line() -> Iterator[None]:
    """Let no error steer the terminal, whatever text from users and tasks it holds."""
    try:
        yield
    except CommandError as error:
        error.args = (told(str(error)),)
        raise


def refuse_what_is_not_text(flags: Mapping[str, Any]) -> None:
    """Raises CommandError for bytes that are not UTF-8, which no database can be asked for."""
    for name in flags.keys() - OF_DJANGO:
        given = flags[name]
        for text in given if isinstance(given, list) else [given]:
            if isinstance(text, str) and SURROGATE.search(text):
                raise usage_error(f"{text!r} holds bytes that are not UTF-8.")


def given(text: str) -> str:
    """Of a flag that chooses: an empty one, as of a variable that is unset, would choose all."""
    if not text:
        raise ArgumentTypeError("is empty, and would choose everything; leave it out for that")
    return text


def add_person(parser: ArgumentParser) -> None:
    """Flags for the audit."""
    parser.add_argument("--reason", default="", help="why, for the audit")
    parser.add_argument("--by", default=None, help="who, for the audit; default: the OS user")


def person_of(flags: Namespace) -> dict[str, str]:
    """Who does it, and why, as the verbs take it."""
    return {"by": os_user() if flags.by is None else flags.by, "reason": flags.reason}


def os_user() -> str:
    """The name of the user that runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # A container may run under a number that has no name.
        return f"uid {os.getuid()}"


TROUBLE = (DatabaseError, InterfaceError)


def sentence_of(error: Exception) -> str:
    """What is wrong, and what to do."""
    if is_busy(error):
        return (
            "The database is busy: somebody holds its write lock, perhaps the task itself if it is "
            "atomic. Try again when that has ended."
        )
    if _is_unmigrated():
        return f"The database has no tables of taskqueue ({_said(error)}). Run manage.py migrate."
    return line_of(error)


def line_of(error: Exception) -> str:
    """What is wrong, without asking the database anything more."""
    return f"The database did not do it: {_said(error)}"


def _said(error: Exception) -> str:
    return " ".join(str(error).split("\n", 1)[0].split()) or type(error).__name__


def _is_unmigrated() -> bool:
    """Whether a look at a task fails in a database that answers."""
    connection = project_connection()
    try:
        with connection.cursor() as cursor:
            tables = connection.introspection.table_names(cursor)
    except TROUBLE:
        return False
    return Task._meta.db_table not in tables
