"""The database's own clock, as a column default."""

from __future__ import annotations

from typing import Any

from django.db.models import DateTimeField, Func


class DatabaseClock(Func):
    """The moment by the database's clock, not that of the transaction's start."""

    template = "CLOCK_TIMESTAMP()"
    arity = 0

    def __init__(self) -> None:
        super().__init__(output_field=DateTimeField())

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite keeps datetimes as text, and its clock gives milliseconds."""
        template = "(STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'now'))"
        return self.as_sql(compiler, connection, template=template, **context)
