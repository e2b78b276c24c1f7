"""Tables on cards: the lists of alerts, limits, endpoints and failures, with one template."""

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
    """A column of a table: its heading, and the content of its cells."""

    title: Any
    show: Show
    is_number: bool = False
    # Whether the heading is only for screen readers, as above buttons.
    is_quiet: bool = False
    css: str = ""

    @property
    def classes(self) -> str:
        """The CSS classes of its cells."""
        number = "taskqueue-number-cell" if self.is_number else ""
        return " ".join(filter(None, (self.css, number)))


@dataclass(frozen=True, kw_only=True)
class Table:
    """A card with a heading, and a table or a sentence saying that there is nothing."""

    # The id of the heading, and that of the table.
    key: str
    table_id: str = ""
    title: Any
    # The content beside the title, and between title and table.
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
    """Return a function that renders a cell with a template, in which the row has that name."""
    return lambda row: render_to_string(template, {**context, called: row}, request)
