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
    # Given some queues: those that the worker serves, and how many tasks to take from each.
    serving: Callable[[list[str]], list[str]]
    quotas: Callable[[list[str], int], list[tuple[str, int]]]

    def own_key(self, per: str) -> str:
        """Return the key of its limiter for a limit that is counted for each host or worker."""
        return self.host if per == "host" else self.name


@dataclass(kw_only=True)
class Limited:
    """The result of a claim under limits."""

    claimed: list[Claimed]
    # Whether tasks are left that could be claimed as soon as other sessions release their locks.
    is_left: bool = False
    # Whether another transaction could claim more.
    needs_another: bool = False
    # Whether tasks wait that belong to no partition.
    has_others: bool = False
    # Subjects of notes that have no row, and limits of partitions whose limiters were pruned. Their
    # rows must be made; after a claim in the caller's transaction, only once that has ended.
    missing: list[str] = field(default_factory=list)
    broken: list[Mapping[str, Any]] = field(default_factory=list)
    # When the next token comes for tasks that are left, by the monotonic clock; infinite if no task
    # waits for one.
    opens_at: float = math.inf
    # The lanes of partitions that this claim opened.
    opened: set[tuple[str, str]] = field(default_factory=set)
    # The partitions of leases whose places may be handed to the next task, by lease.
    passing: dict[int, str] = field(default_factory=dict)
