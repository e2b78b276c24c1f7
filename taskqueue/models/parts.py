"""Parts that several models share: choices, loose references, permissions, figures, the clock."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from django.db import models
from django.db.models import DateTimeField, Func

# Instead of Django's four permissions: rows change by the engine's verbs, so no form adds, changes
# or deletes one.
VIEW_ONLY = ("view",)
# References without a constraint or an index: the rows are deleted independently of each other.
LOOSE: dict[str, Any] = {"db_constraint": False, "db_index": False}


def choices(words: type[StrEnum]) -> list[tuple[str, str]]:
    """Return the words as choices of a column.

    Untranslated, because they are part of migrations.
    """
    return [(word.value, word.value) for word in words]


def one_of(column: str, words: Iterable[StrEnum], *, name: str) -> models.CheckConstraint:
    """Return the constraint that a column holds one of these words."""
    condition = models.Q((f"{column}__in", [word.value for word in words]))
    return models.CheckConstraint(condition=condition, name=name)


def known_status(
    unfinished: Iterable[StrEnum], finished: Iterable[StrEnum], *, name: str
) -> models.CheckConstraint:
    """Return the constraint that `status` is one of these, and that `finished_at` fits it."""
    condition = models.Q(
        finished_at=None, status__in=[word.value for word in unfinished]
    ) | models.Q(finished_at__isnull=False, status__in=[word.value for word in finished])
    return models.CheckConstraint(condition=condition, name=name)


class Figures(models.Model):
    """Counts of attempts and of tasks, and the run and wait times of attempts.

    The first five count attempts, by the status of their lease; the next three count ended tasks,
    by status. `run_times` is a histogram of attempts by bucket (see `taskqueue.core.histogram`),
    and `run_seconds` is the sum of their run times; the other two are the same for the time between
    being ready and the start of the body.
    """

    succeeded = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    lost = models.PositiveBigIntegerField(default=0)
    stopped = models.PositiveBigIntegerField(default=0)
    returned = models.PositiveBigIntegerField(default=0)
    tasks_succeeded = models.PositiveBigIntegerField(default=0)
    tasks_failed = models.PositiveBigIntegerField(default=0)
    tasks_cancelled = models.PositiveBigIntegerField(default=0)

    run_seconds = models.FloatField(default=0.0)
    run_times = models.JSONField(default=dict)
    wait_seconds = models.FloatField(default=0.0)
    wait_times = models.JSONField(default=dict)

    class Meta:
        abstract = True


class ManyOf(models.Field):  # type: ignore[type-arg]
    """A column with many values of one SQL type; on SQLite, which never uses it, a text column."""

    def __init__(self, sql_type: str, **options: Any) -> None:
        self.sql_type = sql_type
        super().__init__(**options)

    def deconstruct(self) -> Any:
        """Return what migrations need to make it again."""
        name, path, arguments, options = super().deconstruct()
        return name, path, [self.sql_type, *arguments], options

    def db_type(self, connection: Any) -> str:
        """Return the column's type."""
        return f"{self.sql_type}[]" if connection.vendor == "postgresql" else "text"


class DatabaseClock(Func):
    """The database's current time, not that of the transaction's start."""

    template = "CLOCK_TIMESTAMP()"
    arity = 0

    def __init__(self) -> None:
        super().__init__(output_field=DateTimeField())

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite stores datetimes as text, and its clock has milliseconds."""
        template = "(STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'now'))"
        return self.as_sql(compiler, connection, template=template, **context)
