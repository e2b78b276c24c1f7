"""The base of all read models: fields with help texts, making them from rows, the JSON form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field, fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar
from uuid import UUID

from taskqueue.access.permissions import VIEW_ARGUMENTS
from taskqueue.declarations.redaction import (
    ShownArguments,
    redacted,
    redacted_context,
    redacted_state,
    redacted_workflow,
)

M = TypeVar("M")
_FIELDS: dict[type[Any], dict[str, Field[Any]]] = {}
_JSON_FIELDS: dict[type[Any], dict[str, Field[Any]]] = {}
_COLUMNS: dict[type[Any], dict[str, str]] = {}


class Viewer(Protocol):
    """The person for whom a read model is made."""

    def has_perm(self, perm: str) -> bool:
        """Return whether they have the permission, such as `taskqueue.view_lease`."""


@dataclass(frozen=True)
class ViewerWithout:
    """A viewer who lacks only these permissions."""

    lacks: frozenset[str] = frozenset()

    def has_perm(self, perm: str) -> bool:
        return perm not in self.lacks


EVERYTHING = ViewerWithout()
WITHOUT_ARGUMENTS = ViewerWithout(frozenset({VIEW_ARGUMENTS}))
# The viewer for the CLI: arguments that cannot be redacted stay hidden on a terminal.
COMMAND_LINE = WITHOUT_ARGUMENTS


def visible_arguments(
    name: str, args: list[Any], kwargs: dict[str, Any], viewer: Viewer
) -> ShownArguments | None:
    """Return the arguments of a call without the values of sensitive ones.

    Return None if no definition says which are sensitive, unless the viewer may view all arguments.
    """
    whole = ShownArguments(args, kwargs)
    return _visible(lambda: redacted(name, args, kwargs), whole, viewer)


def visible_call(
    name: str, args: list[Any], kwargs: dict[str, Any], viewer: Viewer
) -> ShownArguments | None:
    """Return a workflow's arguments like `visible_arguments`; without any, nothing is hidden."""
    whole = ShownArguments(args, kwargs)
    if not args and not kwargs:
        return whole
    return _visible(lambda: redacted_workflow(name, args, kwargs), whole, viewer)


def visible_context(name: str, context: dict[str, Any], viewer: Viewer) -> dict[str, Any] | None:
    """Return the context of a workflow, redacted in the same way."""
    return _visible(lambda: redacted_context(name, context), context, viewer) if context else {}


def visible_checkpoint(name: str, state: Any, viewer: Viewer) -> Any:
    """Return the checkpoint of an attempt; hidden if the task has sensitive arguments."""
    return None if state is None else _visible(lambda: redacted_state(name, state), state, viewer)


def _visible(redact: Callable[[], M | None], whole: M, viewer: Viewer) -> M | None:
    try:
        shown = redact()
    except Exception:  # The project's tasks cannot be imported: the rest is still shown.
        shown = None
    return whole if shown is None and viewer.has_perm(VIEW_ARGUMENTS) else shown


def about(
    help_text: str = "",
    *,
    column: str = "",
    choices: Iterable[str] = (),
    label: Any = "",
    empty: str = "",
    in_json: bool = True,
) -> Any:
    """Describe a field of a read model.

    `column` is the column that it shows, if the names differ; `label` is its title among the
    details of a page, `empty` is the text for no value in a table. A value that differs in each
    reading, such as an age, stays out of the JSON form, because its ETag would never be the same.
    """
    metadata = {
        "help_text": help_text, "column": column, "choices": tuple(choices), "label": label,
        "empty": empty, "in_json": in_json,
    }  # fmt: skip
    return field(metadata=metadata)


def fields_of(model: type[Any]) -> dict[str, Field[Any]]:
    """Return the fields of a read model by name."""
    if model not in _FIELDS:
        _FIELDS[model] = {each.name: each for each in fields(model)}
    return _FIELDS[model]


def json_fields_of(model: type[Any]) -> dict[str, Field[Any]]:
    """Return the fields of its JSON form."""
    if model not in _JSON_FIELDS:
        found = fields_of(model).items()
        _JSON_FIELDS[model] = {
            name: each for name, each in found if each.metadata.get("in_json", True)
        }
    return _JSON_FIELDS[model]


def columns_of(model: type[Any]) -> dict[str, str]:
    """Return the column that each field of a read model shows, by the field's name."""
    if model not in _COLUMNS:
        found = fields_of(model).items()
        _COLUMNS[model] = {name: each.metadata.get("column") or name for name, each in found}
    return _COLUMNS[model]


def from_row(model: type[M], row: object, **values: Any) -> M:
    """Make a read model from a row; `values` are those of fields that are not columns."""
    for name, column in columns_of(model).items():
        if name not in values:
            values[name] = getattr(row, column)
    return model(**values)


def from_rows(model: type[M], rows: Iterable[object]) -> list[M]:
    """Make read models from rows; all of their fields must be columns."""
    return [from_row(model, row) for row in rows]


def json_form(value: Any) -> Any:
    """Return the JSON form of a read model or of values: ISO 8601 in UTC, seconds, UUIDs as text.

    Raises TypeError for a value that has none. An export does this a million times, so frequent
    types are checked first, and abstract base classes, which are slow to check, last.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        text = value.isoformat()
        return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
    if isinstance(value, dict):
        return {name: json_form(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_form(item) for item in value]
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value):
        return {name: json_form(getattr(value, name)) for name in json_fields_of(type(value))}
    if isinstance(value, Iterable):
        return [json_form(item) for item in value]
    raise TypeError(f"{value!r} has no form in JSON.")
