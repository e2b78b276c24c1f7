"""The formats of exports: CSV, safe for spreadsheets, and JSON Lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from unicodedata import category, normalize

from taskqueue.monitoring.read_models.base import json_fields_of
from taskqueue.monitoring.read_models.task import ExportedTask

# Characters that a spreadsheet may take for the beginning of a formula.
SIGNS = frozenset("=+-@\u2212")
# Invisible letters and symbols.
FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


class Csv:
    """A line of names, then a line for each row.

    Texts that look like formulas are made harmless.
    """

    content_type = "text/csv; charset=utf-8"

    def __init__(self) -> None:
        self._writer: Any = csv.writer(_Line())

    def heading(self) -> str:
        """Return the text before all rows."""
        return str(self._writer.writerow(tuple(json_fields_of(ExportedTask))))

    def rows(self, rows: Iterable[dict[str, Any]]) -> str:
        return "".join(self._writer.writerow(map(_cell, row.values())) for row in rows)

    def incomplete(self, *, searched_to: datetime | None, address: str) -> str:
        """Return the last line of an export that has not reached its end: where to continue."""
        reached = f" It has searched back to {searched_to.isoformat()}." if searched_to else ""
        told = f"# This export is incomplete.{reached} Continue: {address}"
        return str(self._writer.writerow([told]))


class JsonLines:
    """An object for each row."""

    content_type = "application/x-ndjson; charset=utf-8"

    def heading(self) -> str:
        return ""

    def rows(self, rows: Iterable[dict[str, Any]]) -> str:
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    def incomplete(self, *, searched_to: datetime | None, address: str) -> str:
        reached = searched_to and searched_to.isoformat()
        return self.rows([{"is_incomplete": True, "searched_to": reached, "continue": address}])


Format = Csv | JsonLines
FORMATS: dict[str, type[Format]] = {"csv": Csv, "jsonl": JsonLines}


class _Line:
    """A file for the CSV writer that returns each line."""

    def write(self, text: str) -> str:
        return text


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if _may_be_formula(text) else text


def _may_be_formula(text: str) -> bool:
    """Return whether a spreadsheet may take the text for a formula.

    Spreadsheets skip invisible characters before the sign, and accept other forms of a sign, such
    as its full-width form.
    """
    # Spaces, control characters, combining marks, and fillers.
    first = next((c for c in text if category(c)[0] not in "ZCM" and c not in FILLERS), "")
    return text[:1] in ("\t", "\r", "\n") or normalize("NFKC", first)[:1] in SIGNS
