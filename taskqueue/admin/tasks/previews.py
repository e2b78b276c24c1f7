"""The arguments of tasks in a list: shortened, and without sensitive values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.db.models import Case, F, Func, IntegerField, JSONField, When
from django.db.models.lookups import LessThanOrEqual
from django.utils.text import Truncator

from taskqueue.monitoring.read_models.base import visible_arguments

# Arguments whose stored form is larger are not read for a list: PostgreSQL stores them out of line.
MOST_BYTES = 2_000
LONGEST_PREVIEW, LONGEST_VALUE = 80, 40


class StoredSize(Func):
    """The stored size of a value in bytes, without reading the value if it is large."""

    function = "pg_column_size"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        """Return the length of the text."""
        return self.as_sql(compiler, connection, function="length", **more)


def short_arguments() -> dict[str, Case]:
    """Return annotations of tasks: their arguments if these are small, else null."""
    is_short = LessThanOrEqual(StoredSize(F("args")) + StoredSize(F("kwargs")), MOST_BYTES)
    return {
        f"short_{name}": Case(When(is_short, then=F(name)), output_field=JSONField())
        for name in ("args", "kwargs")
    }


def note_arguments(tasks: Sequence[Any], user: Any) -> None:
    """Give each task the preview of its arguments; None if none is shown."""
    for task in tasks:
        task.preview = None
        if task.short_args is None:
            continue
        shown = visible_arguments(task.name, task.short_args, task.short_kwargs, user)
        if shown is not None and (shown.args or shown.kwargs):
            task.preview = preview_of(shown.args, shown.kwargs)


def preview_of(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Return arguments in the form of a call, shortened if they are long."""
    values = [_short(value) for value in args]
    values += [f"{name}={_short(value)}" for name, value in kwargs.items()]
    return Truncator(", ".join(values)).chars(LONGEST_PREVIEW)


def _short(value: Any) -> str:
    return Truncator(json.dumps(value, ensure_ascii=False)).chars(LONGEST_VALUE)
