"""The limits of a task, as its details show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskqueue.models.limit import Per
from taskqueue.monitoring.read_models.base import about


@dataclass(frozen=True, kw_only=True)
class ShownLimiter:
    """A limit of a task, with the key that counts for it."""

    name: str
    key: str = about("A hash where it is made of a sensitive argument; empty: one for all tasks.")
    per: str = about("What the limit is counted for.", choices=[each.value for each in Per])

    def __str__(self) -> str:
        return f"{self.name} ({self.key})" if self.key else self.name


@dataclass(frozen=True, kw_only=True)
class ShownTenant:
    """The tenant of a task, who has a share of its queue."""

    key: str
    weight: float

    def __str__(self) -> str:
        return self.key if self.weight == 1 else f"{self.key} * {self.weight:g}"


@dataclass(frozen=True, kw_only=True)
class ShownSequence:
    """The sequence of a task."""

    name: str
    key: str
    halts: bool = about("Whether it stops where one of its tasks fails.")

    def __str__(self) -> str:
        return f"{self.name} ({self.key})" if self.key else self.name


def placement_of(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the fields of `TaskDetails` about a task's limits."""
    shown = [
        ("rate" in each, ShownLimiter(name=each["name"], key=each["key"], per=each["per"]))
        for each in limits.get("limits", ())
    ]
    tenant, sequence = limits.get("tenant"), limits.get("sequence")
    return {
        "concurrency": [each for is_rate, each in shown if not is_rate],
        "rate": [each for is_rate, each in shown if is_rate],
        "fair": tenant and ShownTenant(**tenant),
        "sequence": sequence and ShownSequence(**sequence),
        "requires": limits.get("tags", []),
        "cost": limits.get("cost", 1),
    }
