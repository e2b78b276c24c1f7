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
from taskqueue.management.cli.output import Output, one_line
from taskqueue.models import Task

USAGE = 2
"""The exit code for wrong usage; 1 is for what is refused or does not exist."""
OF_DJANGO = frozenset({"settings", "pythonpath"})
SURROGATE = re.compile("[\ud800-\udfff]")
"""The characters for bytes of the command line that Python cannot decode."""


@dataclass(frozen=True, kw_only=True)
class Subcommand:
    """A subcommand of `manage.py taskqueue`."""

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Output], None]
    example: str = ""
    """An example of its arguments, for the help."""


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
    """Return the error for flags that cannot be combined."""
    return CommandError(message, returncode=USAGE)


@contextmanager
def refusals_reported() -> Iterator[None]:
    """Turn errors into exit codes for scripts."""
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
    """Remove control characters from errors, which may contain text from users."""
    try:
        yield
    except CommandError as error:
        error.args = (one_line(str(error)),)
        raise


def refuse_what_is_not_text(flags: Mapping[str, Any]) -> None:
    """Raise CommandError for bytes that are not UTF-8: no database can store them."""
    for name in flags.keys() - OF_DJANGO:
        given = flags[name]
        for text in given if isinstance(given, list) else [given]:
            if isinstance(text, str) and SURROGATE.search(text):
                raise usage_error(f"{text!r} contains bytes that are not UTF-8.")


def given(text: str) -> str:
    """Refuse an empty value, as of an unset variable: it would choose everything."""
    if not text:
        raise ArgumentTypeError("is empty, which would choose everything; omit the flag for that")
    return text


def add_person(parser: ArgumentParser) -> None:
    """Add flags for the audit."""
    parser.add_argument("--reason", default="", help="the reason, for the audit")
    parser.add_argument(
        "--by", default=None, help="the person, for the audit; default: the OS user"
    )


def person_of(flags: Namespace) -> dict[str, Any]:
    """Return the person and the reason, as the verbs take them."""
    return {"by": os_user() if flags.by is None else flags.by, "reason": flags.reason}


def os_user() -> str:
    """Return the name of the OS user that runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # A container may run under a number that has no name.
        return f"uid {os.getuid()}"


TROUBLE = (DatabaseError, InterfaceError)


def sentence_of(error: Exception) -> str:
    """Return what is wrong with the database, and what to do."""
    if is_busy(error):
        return (
            "The database is busy: another transaction holds its write lock, perhaps an atomic "
            "task. "
            "Try again when it has ended."
        )
    if _is_unmigrated():
        return f"The database has no tables of taskqueue ({_said(error)}). Run manage.py migrate."
    return line_of(error)


def line_of(error: Exception) -> str:
    """Return what is wrong, without another query."""
    return f"The database failed: {_said(error)}"


def _said(error: Exception) -> str:
    return " ".join(str(error).split("\n", 1)[0].split()) or type(error).__name__


def _is_unmigrated() -> bool:
    """Whether the database answers but has no table of tasks."""
    connection = project_connection()
    try:
        with connection.cursor() as cursor:
            tables = connection.introspection.table_names(cursor)
    except TROUBLE:
        return False
    return Task._meta.db_table not in tables
