"""Errors of `manage.py taskqueue` as sentences and exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError

from taskqueue.engine.connections import project_connection
from taskqueue.engine.transient_errors import is_busy
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.cells import one_line
from taskqueue.models import Task

TROUBLE = (DatabaseError, InterfaceError)
# The exit code for wrong usage; 1 is for what is refused or does not exist.
USAGE = 2
OF_DJANGO = frozenset({"settings", "pythonpath"})
# The characters for command line bytes that Python cannot decode.
SURROGATE = re.compile("[\ud800-\udfff]")


def usage_error(message: str) -> CommandError:
    """Return the error for flags that cannot be combined."""
    return CommandError(message, returncode=USAGE)


@contextmanager
def refusals_reported() -> Iterator[None]:
    """Turn errors into exit codes for scripts, and into one line without control characters."""
    try:
        yield
    except CommandError as error:
        error.args = (one_line(str(error)),)
        raise
    except (TaskQueueError, ValueError) as error:
        # InvalidTask and InvalidArguments are ValueErrors; missing objects are LookupErrors.
        is_usage = isinstance(error, ValueError) and not isinstance(error, LookupError)
        raise CommandError(one_line(str(error)), returncode=USAGE if is_usage else 1) from None
    except TROUBLE as error:
        raise CommandError(one_line(sentence_of(error))) from None


def refuse_what_is_not_text(flags: Mapping[str, Any]) -> None:
    """Raise CommandError for bytes that are not UTF-8: no database can store them."""
    for name in flags.keys() - OF_DJANGO:
        value = flags[name]
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and SURROGATE.search(text):
                raise usage_error(f"{text!r} contains bytes that are not UTF-8.")


def sentence_of(error: Exception) -> str:
    """Return a sentence about what is wrong with the database, and what to do."""
    if is_busy(error):
        return (
            "The database is busy: another transaction holds its write lock, perhaps an atomic "
            "task. Try again when it has ended."
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
