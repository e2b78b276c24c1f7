"""The kind of the option `priority`: a number, or the name of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from taskqueue.core.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY, PRIORITY_NAMES
from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.option_kinds import Whole
from taskqueue.exceptions import InvalidTask


@dataclass(frozen=True, repr=False, eq=False)
class PriorityKind(Whole):
    """A priority: a number, or a name such as `high`."""

    lowest: int = LOWEST_PRIORITY
    highest: int = HIGHEST_PRIORITY

    def check(self, name: str, value: Any) -> int:
        if not isinstance(value, str):
            return super().check(name, value)
        if value.lower() in PRIORITY_NAMES:
            return int(PRIORITY_NAMES[value.lower()])
        hint = did_you_mean(value, PRIORITY_NAMES)
        raise InvalidTask(_(
            "{name} must be a whole number between {lowest} and {highest}, or {names}, not "
            "{value!r}.{hint}",
            name=name, lowest=self.lowest, highest=self.highest, names=", ".join(PRIORITY_NAMES),
            value=value, hint=hint,
        ))  # fmt: skip

    def parse(self, name: str, value: Any) -> Any:
        is_number = isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,4}", value)
        return int(value) if is_number else value
