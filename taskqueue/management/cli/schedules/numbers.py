"""Whole numbers as they are typed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable


def whole_number(most: int) -> Callable[[str], int]:
    """What reads a number from 1 to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text[:20]) <= most:
            raise ArgumentTypeError(f"must be a whole number from 1 to {most}")
        return int(text)

    return read
