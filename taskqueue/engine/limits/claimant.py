"""The worker that claims under limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
