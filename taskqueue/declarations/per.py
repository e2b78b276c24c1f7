"""The kind of the option `unique_per`: a period in which a key makes one task."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taskqueue.core.durations import is_duration
from taskqueue.core.periods import WORDS
from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.option_kinds import Kind
from taskqueue.declarations.time_kinds import Seconds, check_duration
from taskqueue.exceptions import InvalidTask


class Per(Kind):
    """A period of the calendar, or a duration."""

    def check(self, name: str, value: Any) -> str | timedelta:
        if isinstance(value, str):
            if value in WORDS:
                return value
            words = ", ".join(map(repr, WORDS))
            raise InvalidTask(_(
                "{name} must be {words} or a duration, not {value!r}.",
                name=name, words=words, value=value,
            ))  # fmt: skip
        return check_duration(name, value, lowest=1.0)

    def parse(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value not in WORDS and is_duration(value):
            return Seconds().parse(name, value)
        return value
