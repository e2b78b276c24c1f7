"""Print readable tables, or one JSON document."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from taskqueue.management.cli.writing import Unwritable, legible, writing
from taskqueue.monitoring.read_models.base import fields_of, json_fields_of, json_form

WIDEST = 60
"""Characters of a cell before it is cut."""


class Writable(Protocol):
    """Where text goes."""

    def write(self, msg: str) -> Any:
        """Write a line."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""

    def flush(self) -> Any:
        """Let out what was written."""


def add_format(parser: ArgumentParser) -> None:
    """The flag that every subcommand has."""
    parser.add_argument("--format", choices=("text", "json"), default="text")


class Output:
    """Prints once: text for people, or JSON for scripts."""

    def __init__(self, stream: Writable, *, form: str, note: Callable[[str], Any]) -> None:
        self._stream = stream
        self._unwritable: Unwritable | None = None
        self.note = note
        """Says something beside it, which would disturb who reads the rest."""
        self.is_json = form == "json"

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks at it as it is printed."""
        return self._stream.isatty()

    def say(self, text: str, value: Any) -> None:
        """A sentence, or what it tells as an object."""
        shown_lines = "\n".join(map(without_controls, text.split("\n")))
        self._write(as_json(value) if self.is_json else shown_lines)

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """Rows under their columns, or all that is known of them as a list of objects."""
        if self.is_json:
            self._write(as_json(rows))
            return
        lines = [columns, *([shown(row[column]) for column in columns] for row in rows)]
        widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self._write("  ".join(cells).rstrip())

    def models(self, models: Sequence[Any], columns: Sequence[str]) -> None:
        """Read models: a table of some of their fields, or all fields as JSON."""
        if self.is_json:
            self._write(as_json(models))
            return
        headings = {name: _heading(name) for name in columns}
        rows = [{headings[name]: cell(model, name) for name in columns} for model in models]
        self.table(rows, list(headings.values()))

    def sheet(self, value: Any, *, without: Collection[str] = ()) -> None:
        """A mapping or a read model; text leaves out what is empty, and the fields `without`."""
        if self.is_json:
            self._write(as_json(value))
            return
        sheet = {name: item for name, item in readable(value).items() if name not in without}
        for line in _lines(sheet, ""):
            self._write(line)

    def _write(self, text: str) -> None:
        try:
            with writing():
                self._stream.write(legible(text, getattr(self._stream, "encoding", None)))
        except Unwritable as error:
            # What is found out after it, as whether it was refused, matters more.
            self._unwritable = error

    def finish(self) -> None:
        """Let out what was written. Raises `Unwritable`, if anything could not be."""
        if self._unwritable is not None:
            raise self._unwritable
        with writing():
            self._stream.flush()

    def line(self, value: Mapping[str, Any]) -> None:
        """A document in one line, which goes out at once."""
        with writing():
            self._stream.write(json.dumps(json_form(value)))
            self._stream.flush()


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping) or is_dataclass(value)


def readable(value: Any) -> dict[str, Any]:
    """The fields of a read model, with a text for no value that has a meaning; or a mapping."""
    if not is_dataclass(value):
        return dict(value)
    fields: dict[str, Any] = {}
    for name, field in json_fields_of(type(value)).items():
        item = getattr(value, name)
        if is_dataclass(item):
            fields.update({f"{name}_{part}": text for part, text in readable(item).items()})
        else:
            fields[name] = field.metadata.get("empty", "") if item is None else item
    return fields


def _lines(value: Mapping[str, Any], indent: str) -> list[str]:
    known = {name: item for name, item in value.items() if item not in (None, "", [], {})}
    width = max((len(name) for name in known), default=0)
    lines = []
    for name, each in known.items():
        if isinstance(each, list) and each and _is_object(each[0]):
            for number, item in enumerate(each):
                heading = f"{indent}{name.removesuffix('s')} {number + 1}"
                lines += ["", heading, *_lines(readable(item), indent + "  ")]
        elif isinstance(each, str) and "\n" in each:
            lines.append(f"{indent}{name}:")
            lines += [f"{indent}  {without_controls(line)}" for line in each.splitlines()]
        else:
            lines.append(f"{indent}{name.ljust(width)}  {_text(each)}")
    return lines


def shown(value: Any) -> str:
    """The value in a cell of a table."""
    text = _text(" ".join(value.split()) if isinstance(value, str) else value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(" ", "milliseconds")
    if isinstance(value, list | dict):
        return json.dumps(json_form(value), ensure_ascii=False)
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    return without_controls(str(value))


def cell(model: Any, name: str) -> Any:
    """The value of a field of a read model for people, with its unit."""
    value = getattr(model, name)
    if name.endswith("_seconds"):
        return short(value)
    if name.endswith("_bytes"):
        return size(value)
    if value in (None, "", [], {}):
        return fields_of(type(model))[name].metadata.get("empty", "")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return value


def _heading(name: str) -> str:
    """The name of a field without its unit, which stands in each cell."""
    for unit in ("_seconds", "_bytes", "_count"):
        name = name.removesuffix(unit)
    return name


def without_controls(text: str) -> str:
    """Text from users must not steer the terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def one_line(text: str) -> str:
    """The text on one line, whole."""
    return without_controls(" ".join(text.split()))


def as_json(value: Any) -> str:
    """One JSON document."""
    return json.dumps(json_form(value), indent=2)


MINUTE, HOUR, DAY = 60, 3600, 86_400


def short(seconds: float | None) -> str:
    """Such as `250 ms`, `4.2 s`, `17 min`, `2.5 h`, `12 d`; empty for None."""
    if seconds is None:
        return ""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 2 * MINUTE:
        return f"{_two_digits(seconds)} s"
    if seconds < 90 * MINUTE:
        return f"{_two_digits(seconds / MINUTE)} min"
    if seconds < 36 * HOUR:
        return f"{_two_digits(seconds / HOUR)} h"
    return f"{_two_digits(seconds / DAY)} d"


def size(octets: int | None) -> str:
    """Such as `12 MB`; empty for None."""
    if octets is None:
        return ""
    number, unit = float(octets), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1024, larger
    return f"{number:.0f} {unit}" if unit == "B" or number >= 9.95 else f"{number:.1f} {unit}"


def _two_digits(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 9.95 else f"{number:.0f}"


def utc(moment: datetime | None) -> str:
    """The moment in a column that is headed by its zone: in seconds, or finer where it is."""
    if moment is None:
        return ""
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat(" ", "milliseconds" if naive.microsecond else "seconds")


def aligned(lines: Iterable[Sequence[str]]) -> list[str]:
    """Lines of equally many cells, as wide as the widest of a column; the last is not cut."""
    cells = [[*map(shown, line[:-1]), one_line(line[-1])] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
