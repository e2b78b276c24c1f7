"""SQL for a value inside a JSON column, and for its comparison with typed text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from django.db.models import BooleanField, Func

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.payload import storable

DEEPEST = 32
LONGEST_PART = 255
# Indexes and keys look alike in a path; SQLite must be told which is meant.
MOST_SPELLINGS = 8
_REFUSED = re.compile(r'["\\\x00-\x1f\x7f]')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,15})?", re.ASCII)
_PLACE = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
CONSTANTS = ("true", "false", "null")


def split_path(text: str) -> tuple[str, ...]:
    """Return the keys and indexes of a dotted path. Raises ValueError."""
    parts = tuple(text.split("."))
    if not all(parts):
        raise ValueError(_(
            "{text!r} is no path: write names with a dot between, as in user.id.", text=text
        ))  # fmt: skip
    if len(parts) > DEEPEST or any(len(part) > LONGEST_PART for part in parts):
        raise ValueError(_(
            "A path has at most {deepest} parts of {longest_part} characters.",
            deepest=DEEPEST, longest_part=LONGEST_PART,
        ))  # fmt: skip
    if _REFUSED.search(text) or storable(text, limit=len(text)) != text:
        raise ValueError(_("{text!r} holds a character that no path has.", text=text))
    return parts


def place_of(part: str) -> int | None:
    """Return a part of a path as an index of a list; None if it can only be a key."""
    return int(part) if _PLACE.fullmatch(part) else None


class AtPath(Func):
    """Whether the value at the path is one of those given: 42 matches the number and the text."""

    output_field = BooleanField()
    template = "({column} #> %s::text[]) = ANY(%s::jsonb[])"

    def __init__(self, column: str, path: Sequence[str], values: Iterable[str]) -> None:
        super().__init__(column)
        self.path = tuple(path)
        self.values = tuple(values)

    @property
    def identity(self) -> Any:
        return (*super().identity, self.path, self.values)

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> Any:  # type: ignore[override]
        """PostgreSQL compares the values as JSON, so 1.0 equals 1."""
        column, params = compiler.compile(self.source_expressions[0])
        documents = [document for value in self.values for document in _documents(value)]
        return self.template.format(column=column), [*params, list(self.path), documents]

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite returns true as 1, so the type of the value is compared too."""
        column, params = compiler.compile(self.source_expressions[0])
        clauses, bound = [], []
        for path in _spellings(self.path):
            for clause, values in _on_sqlite(self.values):
                clauses.append(clause.format(column=column))
                bound += [*params, path] * clause.count("{column}")
                bound += values
        return f"({' OR '.join(clauses)})", bound


def _documents(value: str) -> Iterator[str]:
    """Yield the JSON values that a typed text may stand for."""
    yield json.dumps(value)
    if value in CONSTANTS or _NUMBER.fullmatch(value):
        yield value


def _on_sqlite(values: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    """Yield conditions and parameters; the path is bound for every `{column}`.

    There is one condition for each type, whatever the number of values: SQLite refuses an
    expression of a thousand parts.
    """
    yield _one_of("JSON_TYPE({column}, %s) = 'text' AND JSON_EXTRACT({column}, %s)", values)
    if constants := [value for value in values if value in CONSTANTS]:
        yield _one_of("JSON_TYPE({column}, %s)", constants)
    if numbers := [_number(value) for value in values if _NUMBER.fullmatch(value)]:
        yield _one_of(
            "JSON_TYPE({column}, %s) IN ('integer', 'real') AND JSON_EXTRACT({column}, %s)", numbers
        )


def _one_of(left: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    return f"({left} IN ({', '.join(['%s'] * len(values))}))", list(values)


def _number(value: str) -> float:
    return float(value) if "." in value else int(value)


def _spellings(path: Sequence[str]) -> list[str]:
    """Return the path in SQLite's notation, with each number as an index and as a key."""
    ways = [
        [f".{json.dumps(part)}"]
        if place_of(part) is None
        else [f"[{part}]", f".{json.dumps(part)}"]
        for part in path
    ]
    several = product(*ways)
    return ["$" + "".join(parts) for parts, _ in zip(several, range(MOST_SPELLINGS), strict=False)]
