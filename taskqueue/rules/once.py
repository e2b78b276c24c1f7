"""The rule of a single time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from taskqueue.rules import values, wording
from taskqueue.rules.base import Rule


@dataclass(frozen=True, init=False)
class Once(Rule):
    """Due once, `at` an aware datetime."""

    kind: ClassVar[str] = "once"
    at: datetime
    start: datetime | None = field(repr=False)
    end: datetime | None = field(repr=False)
    refusal: str = field(repr=False)

    def __init__(self, at: datetime) -> None:
        self._settle({"at": at})

    def _canonical(self, **given: Any) -> dict[str, Any]:
        return {"at": values.moment("Once", "at", given["at"])}

    def _times(self, after: datetime) -> Iterator[datetime]:
        if self.at > after:
            yield self.at

    def _description(self) -> str:
        return f"Once, at {wording.moment(self.at)}"

    def _json_values(self) -> dict[str, Any]:
        return {"at": self.at.isoformat()}

    def _json_limits(self) -> dict[str, Any]:
        return {}
