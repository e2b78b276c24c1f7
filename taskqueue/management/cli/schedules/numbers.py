"""Whole numbers and options as they are typed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

from taskqueue.management.cli.json_values import json_value


def whole_number(most: int) -> Callable[[str], int]:
    """What reads a number from 1 to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text[:20]) <= most:
            raise ArgumentTypeError(f"must be a whole number from 1 to {most}")
        return int(text)

    return read


def option_value(text: str) -> tuple[str, Any]:
    """A name and its value: JSON, or text as it stands."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ArgumentTypeError(f"{text!r} must be NAME=VALUE")
    try:
        return name, json_value(value)
    except ValueError:
        return name, value
