"""Values that are typed as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from typing import Any


def json_value(text: str) -> Any:
    """The value. Raises ArgumentTypeError for one nested too deeply, ValueError for no JSON."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ArgumentTypeError("is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ArgumentTypeError("has a key twice in one object")
    return found


def json_list(text: str) -> list[Any]:
    """A list. Raises ArgumentTypeError."""
    value = _checked(text)
    if not isinstance(value, list):
        raise ArgumentTypeError("must be a JSON list")
    return value


def json_object(text: str) -> dict[str, Any]:
    """An object. Raises ArgumentTypeError."""
    value = _checked(text)
    if not isinstance(value, dict):
        raise ArgumentTypeError("must be a JSON object")
    return value


def _checked(text: str) -> Any:
    try:
        return json_value(text)
    except ValueError as error:
        raise ArgumentTypeError(f"not JSON: {error}") from None
