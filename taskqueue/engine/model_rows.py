"""Make model instances from statements that select all columns of the model, and others.

The ORM's `raw` builds a query each time, which takes longer than a statement that reads one row,
and the constructor of a model takes as long for each row as the driver does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, Generic, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import JSONField, Model
from django.db.models.base import ModelState
from django.db.models.expressions import Col

Row = TypeVar("Row", bound=Model)
Converters = list[tuple[int, Col, Callable[..., Any]]]
# Values from a database have no surrounding spaces, for which `json.loads` checks each time.
_decode = json.JSONDecoder().raw_decode


class RowsOf(Generic[Row]):
    """The columns of a model in a statement, and the instances made from its rows."""

    def __init__(self, model: type[Row], *, without: Collection[str] = ()) -> None:
        """`without`: fields that are left out; an instance loads one when it is accessed."""
        self._model = model
        fields = [field for field in model._meta.concrete_fields if field.attname not in without]
        self._columns = [field.column for field in fields]
        self._names = [field.attname for field in fields]
        self._expressions = [field.get_col("") for field in fields]
        # Positions of JSON columns.
        self._texts = [place for place, field in enumerate(fields) if isinstance(field, JSONField)]
        self._converters: dict[str, Converters] = {}

    @property
    def count(self) -> int:
        """The number of columns."""
        return len(self._columns)

    @property
    def nulls(self) -> str:
        """As many nulls, for a part of a UNION that has no such row."""
        return ", ".join(["NULL"] * self.count)

    def columns(self, table: str) -> str:
        """Return the columns of a table, in order."""
        return ", ".join(f'{table}."{column}"' for column in self._columns)

    def row(self, connection: BaseDatabaseWrapper, values: Sequence[Any]) -> Row:
        """Return the instance for these column values."""
        converters = self._converters.get(connection.vendor)
        if converters is None:
            converters = self._converters[connection.vendor] = self._find_converters(connection)
        made = list(values)
        for place, expression, convert in converters:
            made[place] = convert(made[place], expression, connection)
        for place in self._texts:
            if (text := made[place]) is not None:
                made[place] = _decode(text)[0]
        # Like `from_db`, which is slower because it goes through the fields one by one.
        row = self._model.__new__(self._model)
        row.__dict__.update(zip(self._names, made, strict=True))
        row._state = state = ModelState()
        state.db, state.adding = connection.alias, False
        return row

    def _find_converters(self, connection: BaseDatabaseWrapper) -> Converters:
        return [
            (place, expression, convert)
            for place, expression in enumerate(self._expressions)
            if place not in self._texts
            for convert in (
                *connection.ops.get_db_converters(expression),
                *expression.get_db_converters(connection),
            )
        ]
