"""Print readable tables, or one JSON document."""

from __future__ import annotations

import json
import logging
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from taskqueue.management.cli.cells import aligned, size, without_controls
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.read_models.base import fields_of, json_fields_of, json_form

EMPTY: tuple[Any, ...] = (None, "", [], {})


FORMATS = ("text", "json")


def add_format(
    parser: ArgumentParser, default: str = "text", choices: Sequence[str] = FORMATS
) -> None:
    """Add the flag that every subcommand has."""
    parser.add_argument("--format", choices=choices, default=default)


class Output:
    """Prints text for people, or one JSON document for scripts."""

    def __init__(
        self, stream: OutputWrapper | None, *, form: str, note: Callable[[str], Any]
    ) -> None:
        self._stream = stream
        self._unwritable: Unwritable | None = None
        self.note = note  # Prints beside the output, which it must not disturb.
        self.is_json = form == "json"

    @property
    def is_terminal(self) -> bool:
        """Return whether somebody sees the output as it is printed."""
        return self._stream is not None and self._stream.isatty()

    def say(self, text: str | Iterable[str], value: Any = None) -> None:
        """Print text, or lines of it; or the value as JSON."""
        lines = (text if isinstance(text, str) else "\n".join(text)).split("\n")
        try:
            self._write(as_json(value) if self.is_json else "\n".join(map(without_controls, lines)))
        except Unwritable as error:
            # Later errors, such as a refusal, matter more.
            self._unwritable = error

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """Print rows under their columns, or everything known about them as a list of objects."""
        lines = [[_text(row[column]) for column in columns] for row in rows]
        self.say(aligned([columns, *lines]), rows)

    def models(self, models: Sequence[Any], columns: Sequence[str]) -> None:
        """Print some fields of read models as a table, or all fields as JSON."""
        lines = [[_text(_cell(model, name)) for name in columns] for model in models]
        self.say(aligned([list(map(_heading, columns)), *lines]), models)

    def sheet(self, value: Any, *, without: Collection[str] = ()) -> None:
        """Print a mapping or a read model; text leaves out empty fields, and those of `without`."""
        fields = {name: item for name, item in readable(value).items() if name not in without}
        self.say(_lines(fields, ""), value)

    def line(self, value: Mapping[str, Any]) -> None:
        """Print a document on one line, and flush it. Raises `Unwritable`."""
        self._write(json.dumps(json_form(value)))
        self._flush()

    def words(self, text: str) -> None:
        """Print one line of text, and flush it. Raises `Unwritable`."""
        self._write(without_controls(text))
        self._flush()

    def raw(self, text: str) -> None:
        """Print text unchanged, such as a part of a document. Raises `Unwritable`."""
        if not text:
            return
        with writing():
            if self._stream is None:
                raise OSError("it is closed")
            self._stream.write(text, ending="")
        self._flush()

    def finish(self) -> None:
        """Flush the output. Raises `Unwritable` if anything could not be written."""
        if self._unwritable is not None:
            raise self._unwritable
        self._flush()

    def _write(self, text: str) -> None:
        with writing():
            if self._stream is None:
                raise OSError("it is closed")
            self._stream.write(legible(text, getattr(self._stream, "encoding", None)))

    def _flush(self) -> None:
        if self._stream is not None:
            with writing():
                self._stream.flush()


def readable(value: Any) -> dict[str, Any]:
    """Return the fields of a read model, with a text for missing values that have a meaning."""
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


def _lines(fields: Mapping[str, Any], indent: str) -> list[str]:
    fields = {name: value for name, value in fields.items() if value not in EMPTY}
    width = max(map(len, fields), default=0)
    lines = []
    for name, value in fields.items():
        if isinstance(value, list) and (isinstance(value[0], Mapping) or is_dataclass(value[0])):
            for number, item in enumerate(value, start=1):
                heading = f"{indent}{name.removesuffix('s')} {number}"
                lines += ["", heading, *_lines(readable(item), indent + "  ")]
        elif isinstance(value, str) and "\n" in value:
            lines += [f"{indent}{name}:", *(f"{indent}  {line}" for line in value.splitlines())]
        else:
            lines.append(f"{indent}{name.ljust(width)}  {_text(value)}")
    return lines


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.isoformat(" ", "milliseconds")
        case list() | dict():
            return json.dumps(json_form(value), ensure_ascii=False)
        case timedelta():
            return f"{value.total_seconds():g} s"
    return str(value)


def _cell(model: Any, name: str) -> Any:
    """Return the value of a field of a read model for people, with its unit."""
    value = getattr(model, name)
    if name.endswith("_seconds"):
        return short_duration(value)
    if name.endswith("_bytes"):
        return size(value)
    if value in EMPTY:
        return fields_of(type(model))[name].metadata.get("empty", "")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return value


def _heading(name: str) -> str:
    """Return the name of a field without its unit, which is in each cell."""
    for unit in ("_seconds", "_bytes", "_count"):
        name = name.removesuffix(unit)
    return name


def as_json(value: Any) -> str:
    """Return one JSON document."""
    return json.dumps(json_form(value), indent=2)


# The exit code if the command was carried out but its output could not be written.
NOT_SAID = 3
# Each is as wide as the character that it replaces, so that columns stay aligned.
MARKS = str.maketrans("…→▁▂▃▄▅▆▇█“”�", '~>_.:-=+*#""?')


class Unwritable(Exception):
    """The standard output cannot be written; the message says why."""


def legible(text: str, encoding: str | None) -> str:
    """Return the text with marks or escapes for characters that the encoding lacks."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        octets = text.translate(MARKS).encode(encoding or "utf-8", "backslashreplace")
        return octets.decode(encoding or "utf-8")
    return text


@contextmanager
def writing() -> Iterator[None]:
    """Raise `Unwritable` if the stream is full, closed or broken, but not if its reader left."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unwritable(said) from error


@contextmanager
def hints_told_once() -> Iterator[None]:
    """Keep the hints out of the log that the commands print as notes."""
    engine = logging.getLogger("taskqueue.engine")

    def is_no_hint(record: logging.LogRecord) -> bool:
        return not hasattr(record, "hint")

    engine.addFilter(is_no_hint)
    try:
        yield
    finally:
        engine.removeFilter(is_no_hint)


@contextmanager
def finished(finish: Callable[[], None]) -> Iterator[None]:
    """Finish the output; end quietly if its reader has left.

    Raises CommandError with exit code `NOT_SAID` if it cannot be written; an error of the block
    itself takes precedence.
    """
    try:
        yield
        finish()
    except BrokenPipeError:
        _write_nowhere()
    except Unwritable as error:
        _write_nowhere()
        raise CommandError(
            f"The command was done, but the standard output cannot be written: {error}.",
            returncode=NOT_SAID,
        ) from None
    except BaseException:
        try:
            finish()
        except (Unwritable, OSError):
            _write_nowhere()
        raise


def _write_nowhere() -> None:
    """Redirect the output so that flushing at the end of the process raises no more errors."""
    with suppress(AttributeError, OSError, ValueError):  # There may be no file at all.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
