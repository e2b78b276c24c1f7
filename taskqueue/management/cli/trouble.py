"""What is said of a database that could not do what was asked: one line."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError

from taskqueue.engine.connections import project_connection
from taskqueue.engine.transient_errors import is_busy
from taskqueue.models import Task

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
