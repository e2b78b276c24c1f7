"""Tables on cards: the lists of alerts, limits, endpoints and failures, by one template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string

LISTING = "admin/taskqueue/listing.html"
Show = Callable[[Any], object]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table: its heading, and what stands in a row of it."""

    title: Any
    show: Show
    is_number: bool = False
    # Whether the heading is for screen readers alone, as above buttons.
    is_quiet: bool = False
    css: str = ""

    @property
    def classes(self) -> str:
        """The classes of its cells."""
        number = "taskqueue-number-cell" if self.is_number else ""
        return " ".join(filter(None, (self.css, number)))


@dataclass(frozen=True, kw_only=True)
class Table:
    """A card with a heading, and a table or the sentence that there is nothing."""

    # The id of the heading, and that of the table.
    key: str
    table_id: str = ""
    title: Any
    # Beside the title, and between it and the table.
    aside: object = ""
    lead: object = ""
    # Links beside the heading: titles with addresses.
    tools: Sequence[tuple[Any, str]] = ()
    columns: Sequence[Column]
    rows: Sequence[Any]
    empty: Any
    note: object = ""

    def lines(self) -> Iterable[list[tuple[Column, object]]]:
        """Yield the cells of each row, each with its column."""
        for row in self.rows:
            yield [(column, column.show(row)) for column in self.columns]


def part(template: str, request: HttpRequest, called: str, **context: Any) -> Show:
    """Return what renders a cell by a template, in which the row has that name."""
    return lambda row: render_to_string(template, {**context, called: row}, request)
