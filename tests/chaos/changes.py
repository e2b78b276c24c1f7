"""Recording every change of a status, of a key's holder, and of the ended counts, by triggers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection

from tests.chaos.history import Change
from tests.chaos.triggers import NO_TRIGGERS, READ, TRIGGERS


def install_changes() -> None:
    """From here on changes are recorded, in the transactions that make them."""
    remove_changes()
    _execute(TRIGGERS[connection.vendor])


def remove_changes() -> None:
    """Record no more, and forget."""
    _execute(NO_TRIGGERS[connection.vendor])


@contextmanager
def changes_recorded() -> Iterator[None]:
    """Changes are recorded meanwhile."""
    install_changes()
    try:
        yield
    finally:
        remove_changes()


def are_recorded() -> bool:
    """Whether the triggers are in place."""
    return "chaos_change" in connection.introspection.table_names()


def read_changes() -> tuple[Change, ...]:
    """All changes, in the order of writing."""
    with connection.cursor() as cursor:
        cursor.execute(READ[connection.vendor])
        return tuple(_change(row) for row in cursor.fetchall())


def _change(row: tuple[Any, ...]) -> Change:
    number, at, noun, task_id, attempt, before, after, worker, holds, expires_at, run_after = row
    return Change(
        number, float(at), noun, str(UUID(str(task_id))), attempt, before, after, worker,
        bool(holds), expires_at, run_after,
    )  # fmt: skip


def _execute(statements: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
