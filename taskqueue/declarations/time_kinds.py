"""The kinds of options that are points in time or durations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from taskqueue.core.durations import duration_from_text, is_duration
from taskqueue.core.naming import shown
from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.core.retries import seconds_of
from taskqueue.declarations.option_kinds import Kind
from taskqueue.exceptions import LONGEST_DURATION, Duration, InvalidTask

# A point in time, or the time from now until it.
Moment = datetime | Duration


@dataclass(frozen=True, repr=False, eq=False)
class Seconds(Kind):
    """A duration: seconds or a timedelta; in text such as `5m`."""

    lowest: float = 0.0

    def check(self, name: str, value: Any) -> timedelta:
        return check_duration(name, value, lowest=self.lowest)

    def parse(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return duration_from_text(value)
        except ValueError as error:
            raise InvalidTask(_("{name}: {error}", name=name, error=why(error))) from None


def check_duration(name: str, value: Any, *, lowest: float = 0.0) -> timedelta:
    """Return the duration as a timedelta. Raises `InvalidTask`."""
    try:
        seconds = seconds_of(value)
    except TypeError as error:
        raise InvalidTask(_("{name}: {error}", name=name, error=why(error))) from None
    if not lowest <= seconds <= LONGEST_DURATION:
        raise InvalidTask(_(
            "{name} must be between {lowest:g} and {longest_duration:,} seconds, not {value}.",
            name=name, lowest=lowest, longest_duration=LONGEST_DURATION, value=shown(value),
        ))  # fmt: skip
    return timedelta(seconds=seconds)


@dataclass(frozen=True, repr=False, eq=False)
class When(Kind):
    """An aware datetime, or a duration from now; in text ISO 8601 or such as `5m`."""

    # Whether a negative duration means now.
    past_is_now: bool = False

    def check(self, name: str, value: Any) -> datetime | timedelta:
        if not isinstance(value, datetime):
            return self._check_delay(name, value)
        if value.tzinfo is None or value.utcoffset() is None:
            raise InvalidTask(_(
                "{name} must be an aware datetime, not {value!r}.", name=name, value=value
            ))  # fmt: skip
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise InvalidTask(_(
                "{name} must lie in the years 1 to 9999, not {value!r}.", name=name, value=value
            )) from None  # fmt: skip

    def _check_delay(self, name: str, value: Any) -> timedelta:
        if isinstance(value, timedelta) and value < timedelta(0):
            return timedelta(0)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.past_is_now and is_number and -math.inf < seconds_of(value) < 0:
            return timedelta(0)
        return check_duration(name, value)

    def parse(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if is_duration(value):
            return Seconds().parse(name, value)
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise InvalidTask(_(
                "{name}: {value!r} is neither a duration such as 5m nor a moment such as "
                "2026-03-01T12:00+00:00.",
                name=name, value=value,
            )) from None  # fmt: skip


class HoldTime(Kind):
    """One of a few words, or a duration."""

    words = ("finished", "started", "kept")

    def check(self, name: str, value: Any) -> str | timedelta:
        if value in self.words:
            return str(value)
        if isinstance(value, str):
            words = ", ".join(map(repr, self.words))
            raise InvalidTask(_(
                "{name} must be {words} or a duration, not {value!r}.",
                name=name, words=words, value=value,
            ))  # fmt: skip
        return check_duration(name, value, lowest=0.001)

    def parse(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value not in self.words and is_duration(value):
            return Seconds().parse(name, value)
        return value
