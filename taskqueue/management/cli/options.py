"""Options of tasks as typed arguments: `NAME=VALUE`, the same for every command."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from taskqueue.declarations.option_forms import is_duration
from taskqueue.declarations.option_kinds import When
from taskqueue.declarations.options import OPTIONS, options_from_json
from taskqueue.exceptions import InvalidTask
from taskqueue.management.cli.base import usage_error
from taskqueue.management.cli.json_values import json_value
from taskqueue.management.cli.times import moment

VALUES = (
    "a value is JSON, plain text, a duration such as 5m, "
    "backoff='exponential(base=2, cap=600)' or retry_for=ConnectionError,shop.errors.Busy"
)
"""How values are written, for the help of a flag."""


def typed_option(text: str) -> tuple[str, Any]:
    """Return the name and the value; a moment without an offset is in the project's time zone."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ArgumentTypeError(f"{text!r} must be OPTION=VALUE")
    with suppress(ValueError):
        return name, json_value(value)
    is_moment = name in OPTIONS and isinstance(OPTIONS[name].kind, When)
    if is_moment and not is_duration(value):
        with suppress(ArgumentTypeError):
            return name, moment(value)
    return name, value


def options_of(typed: Sequence[tuple[str, Any]], *, flag: str) -> dict[str, Any]:
    """Return the options as `.using()` takes them.

    Raises CommandError if one is given twice or its value cannot be read.
    """
    counted = Counter(name for name, _ in typed)
    if twice := sorted(name for name, times in counted.items() if times > 1):
        raise usage_error(f"{flag} sets {', '.join(twice)} twice. Set each option once.")
    try:
        return options_from_json(dict(typed))
    except InvalidTask as error:
        raise usage_error(str(error)) from None
