"""Rates: how many tokens a limiter has left, and when the next ones come. Standard library only.

`Window` counts the starts of the last window in parts, and counts each part that the window
overlaps in full. So every window of that length has at most the rate, wherever it begins; bursts up
to the rate are allowed, and at least `PARTS / (PARTS + 1)` of the rate is reached. `Even` spaces
starts by the generic cell rate algorithm (ITU-T I.371) without any burst.

Times are seconds by the database's clock. The stored form of a limiter is JSON.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

PARTS = 40


@dataclass
class Window:
    """At most `rate` tokens in any window of `seconds`."""

    rate: int
    seconds: float
    # How many tokens each part took, by its number; a part is `seconds / PARTS` long.
    taken: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, rate: int, seconds: float, stored: Any, *, now: float) -> Window:
        """Return the window from its stored form.

        After a change of its length, all of it counts as new.
        """
        window = cls(rate, seconds)
        if not stored or "parts" not in stored:
            return window
        taken = {int(part): int(number) for part, number in stored["parts"]}
        if stored["seconds"] != seconds:
            newest = (max(taken, default=0) + 1) * stored["seconds"] / PARTS
            if newest + stored["seconds"] > now and taken:
                taken = {window._part(now): sum(taken.values())}
            else:
                taken = {}
        window.taken = taken
        return window

    def left(self, now: float) -> int:
        """Return how many tokens may be taken."""
        first = self._part(now - self.seconds)
        self.taken = {part: number for part, number in self.taken.items() if part >= first}
        return max(0, self.rate - sum(self.taken.values()))

    def take(self, number: int, now: float) -> None:
        """Take tokens; the caller has checked that there are enough."""
        part = self._part(now)
        self.taken[part] = self.taken.get(part, 0) + number

    def ready_at(self, number: int, now: float) -> float:
        """Return when `number` tokens may be taken, if no others are taken before."""
        missing = number - self.left(now)
        for part in sorted(self.taken):
            if missing <= 0:
                break
            missing -= self.taken[part]
            # The window must have passed the whole part.
            now = max(now, (part + 1) * self.seconds / PARTS + self.seconds)
        return now

    def stored(self) -> dict[str, Any]:
        """Return the stored form."""
        return {"seconds": self.seconds, "parts": sorted(self.taken.items())}

    def _part(self, moment: float) -> int:
        return math.floor(moment * PARTS / self.seconds)


@dataclass
class Even:
    """A token every `seconds / rate`, and never two at once."""

    rate: int
    seconds: float
    # When the next token comes.
    next_at: float = 0.0

    @classmethod
    def of(cls, rate: int, seconds: float, stored: Any) -> Even:
        """Return the tokens from their stored form."""
        next_at = stored.get("next_at", 0.0) if stored else 0.0
        return cls(rate, seconds, next_at)

    def left(self, now: float) -> int:
        """Return how many tokens may be taken: as many as one start costs, or none."""
        return self.rate if now >= self.next_at and self.rate > 0 else 0

    def take(self, number: int, now: float) -> None:
        """Take tokens; the caller has checked that there are some."""
        self.next_at = max(now, self.next_at) + number * self.seconds / self.rate

    def ready_at(self, number: int, now: float) -> float:
        """Return when `number` tokens may be taken, if no others are taken before."""
        return max(now, self.next_at)

    def stored(self) -> dict[str, Any]:
        """Return the stored form."""
        return {"next_at": self.next_at}


Tokens = Window | Even


def tokens_of(rate: int, seconds: float, *, smooth: bool, stored: Any, now: float) -> Tokens:
    """Return the tokens of a limiter from their stored form."""
    if smooth:
        return Even.of(rate, seconds, stored)
    return Window.of(rate, seconds, stored, now=now)
