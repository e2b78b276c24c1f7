"""The worker that claims under limits, and the result of its claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from taskqueue.engine.rows import Claimed


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """The worker that claims."""

    name: str
    host: str
    tags: frozenset[str]
    # Of some queues, those that it serves; and how many tasks to take from each of them.
    serving: Callable[[list[str]], list[str]]
    quotas: Callable[[list[str], int], list[tuple[str, int]]]

    def own_key(self, per: str) -> str:
        """Return the key of its limiter of a limit that is counted for hosts or workers."""
        return self.host if per == "host" else self.name


@dataclass(kw_only=True)
class Limited:
    """The result of a claim under limits."""

    claimed: list[Claimed]
    # Whether something is left that could be taken as soon as others let go of it.
    is_left: bool = False
    # Whether a further transaction could take more.
    needs_another: bool = False
    # Whether a task waits that belongs to no partition.
    has_others: bool = False
    # Subjects of notes of which there is no row, and what limits partitions without their limiters:
    # where the caller's transaction claimed, they are to be made after it.
    missing: list[str] = field(default_factory=list)
    broken: list[Mapping[str, Any]] = field(default_factory=list)
    # When the next token comes for what was left, by the monotonic clock; infinite: nothing waits
    # for one.
    opens_at: float = math.inf
    # The lanes of partitions that were opened.
    opened: set[tuple[str, str]] = field(default_factory=set)
    # The partitions of leases whose places may pass to the next task, by lease.
    passing: dict[int, str] = field(default_factory=dict)
