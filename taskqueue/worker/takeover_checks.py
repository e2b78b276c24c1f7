"""On SQLite: which of the leases that were found expired may be taken over."""

from __future__ import annotations

from collections.abc import Iterable

SECOND_LOOK = 1.2
"""Seconds between finding a lease expired and taking it over.

A body that holds the write lock keeps every worker from renewing. Once the lock is free, the
worker has this long to do so.
"""
LOOK_INTERVAL = SECOND_LOOK / 4
"""Seconds between two looks while a lease is suspected."""
LONGEST_GAP = 0.75
"""Looks further apart than this tell that the lock was held again in between."""
LONGEST_SUSPICION = 3
"""Lease durations after which it counts no more that others hold the lock again and again."""


class TakeoverChecks:
    """Spares who could not renew: counts only time in which the write lock was to be had."""

    def __init__(self, *, lease_seconds: float) -> None:
        self._bound = LONGEST_SUSPICION * lease_seconds
        self._looked_at = 0.0
        self._first: dict[int, float] = {}
        self._since: dict[int, float] = {}

    def __bool__(self) -> bool:
        return bool(self._since)

    def confirmed(self, expired: Iterable[int], now: float) -> set[int]:
        """Of those that are expired at `now`, those that have been for long enough."""
        is_gap = now - self._looked_at > LONGEST_GAP
        self._looked_at = now
        known = {} if is_gap else self._since
        self._since = {lease_id: known.get(lease_id, now) for lease_id in expired}
        self._first = {lease_id: self._first.get(lease_id, now) for lease_id in self._since}
        return {
            lease_id
            for lease_id, since in self._since.items()
            if now - since >= SECOND_LOOK or now - self._first[lease_id] >= self._bound
        }

    def forget(self, lease_id: int) -> None:
        """It was taken over."""
        self._since.pop(lease_id, None)
        self._first.pop(lease_id, None)

    def clear(self) -> None:
        """Nothing is expired."""
        self._since.clear()
        self._first.clear()
