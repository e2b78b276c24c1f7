"""Limits and admissions as JSON, `{"limit": 2, "key": "user_id"}`, and as text as in Python."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.exceptions import InvalidTask

T = TypeVar("T")
# Characters of a text: a parser of Python must not be given more than people write.
LONGEST_TEXT = 1000


def from_fields(name: str, by: type[T], values: Mapping[str, Any]) -> T:
    """Return the object with these fields. Raises `InvalidTask`."""
    known = _fields(by)
    for key in values:
        if key not in known:
            hint = did_you_mean(key, known, otherwise=f"Choose from {', '.join(known)}.")
            raise InvalidTask(_(
                "{name}: {type} has no {key!r}.{hint}",
                name=name, type=by.__name__, key=key, hint=hint,
            ))  # fmt: skip
    if known[0] not in values:
        raise InvalidTask(_("{name}: {known!r} is missing.", name=name, known=known[0]))
    return by(**values)


def fields_in_text(name: str, by: type[Any], text: str, *, example: str) -> list[dict[str, Any]]:
    """Return the fields of each object in `Rate("100/m", key="user_id")`, or a list of such.

    Values are plain: nothing of the text is run. Raises `InvalidTask`.
    """
    refused = InvalidTask(_(
        "{name} must be such as {example}, not {text!r}.",
        name=name, example=example, text=text[:100],
    ))  # fmt: skip
    if len(text) > LONGEST_TEXT:
        raise refused
    try:
        tree: ast.expr = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refused from None
    calls = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
    found = []
    for call in calls:
        named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if not named or call.func.id != by.__name__ or len(call.args) > 1:  # type: ignore[attr-defined]
            raise refused
        assert isinstance(call, ast.Call)
        pairs = [(_fields(by)[0], each) for each in call.args]
        pairs += [(each.arg or "", each.value) for each in call.keywords]
        if len(dict(pairs)) < len(pairs):
            raise refused
        try:
            found.append({key: ast.literal_eval(value) for key, value in pairs})
        except (ValueError, TypeError, RecursionError, MemoryError):
            raise refused from None
    return found


def _fields(by: Any) -> list[str]:
    return [field.name for field in fields(by)]
