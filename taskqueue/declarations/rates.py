"""Rates as text: `100/m`, `5/10s`, `1/h`."""

from __future__ import annotations

import re
from typing import NamedTuple

from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import InvalidTask

DAY = 86_400
UNITS = {"s": 1, "m": 60, "h": 3600, "d": DAY}
# Characters of a rate.
LONGEST_RATE = 21
_RATE = re.compile(r"([0-9]{1,9})/([0-9]{1,9})?([smhd])")


class RateOf(NamedTuple):
    """So many in each window of so many seconds."""

    number: int
    seconds: int


def rate_of(what: str, text: object, *, most: int, longest: int = DAY) -> RateOf:
    """Parse a rate: a number, a slash, and a length of time such as `m` or `10s`.

    `most` bounds the number, `longest` the seconds. Raises `InvalidTask`; `what` is named in it.
    """
    match = _RATE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidTask(_(
            "{what} must be a rate such as '100/m', '5/10s', '1/h' or '3/d', not {text!r}.",
            what=what, text=text,
        ))  # fmt: skip
    number, seconds = int(match[1]), int(match[2] or 1) * UNITS[match[3]]
    if not 1 <= number <= most:
        raise InvalidTask(_(
            "{what} must allow 1 to {most:,} at a time, not {number:,} ({text!r}).",
            what=what, most=most, number=number, text=text,
        ))  # fmt: skip
    if not 1 <= seconds <= longest:
        raise InvalidTask(_(
            "{what} must have a window of 1s to {days}d, not {seconds:,} seconds ({text!r}).",
            what=what, days=longest // DAY, seconds=seconds, text=text,
        ))  # fmt: skip
    return RateOf(number, seconds)


def rate_text(number: int, seconds: float) -> str:
    """Return a rate as people write it: 100 in 60 seconds are `100/m`."""
    for unit, length in reversed(UNITS.items()):
        if seconds >= length and seconds % length == 0:
            times = int(seconds // length)
            return f"{number}/{times if times > 1 else ''}{unit}"
    return f"{number}/{seconds:g}s"
