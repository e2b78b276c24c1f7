"""A claim that the main thread leaves for the database thread, to begin when tasks are announced.

So a notification need not wake the main thread before the claim.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from taskqueue.worker.exchange import Exchange


class StandingClaim:
    """Holds a claim while the main thread sleeps. One of the two threads gets it, never both."""

    def __init__(self, heard: deque[str], choose: Callable[[set[str]], Sequence[str]]) -> None:
        """`heard` are notifications. `choose` returns the queues to claim from because of them.

        It returns none if the main thread must act first.
        """
        self._heard = heard
        self._choose = choose
        self._held: deque[Exchange] = deque()
        self._left: Exchange | None = None

    def leave(self, claim: Exchange) -> None:
        """Let the database thread begin this claim. Only the main thread calls this."""
        self._left = claim
        self._held.append(claim)

    def take_back(self) -> Exchange | None:
        """Withdraw the claim; if it has begun, return it. Only the main thread calls this."""
        left, self._left = self._left, None
        return left if self._pop() is None else None

    def begin(self) -> Exchange | None:
        """Return the claim, if it may begin now. Only the database thread calls this."""
        queues = self._choose(set(self._heard)) if self._held and self._heard else ()
        if queues and (claim := self._pop()) is not None:
            # The claim answers these. A ping may add others, which the next look answers.
            self._heard.clear()
            claim.announced = queues
            return claim
        return None

    @property
    def is_announced(self) -> bool:
        """Whether the main thread has notifications to act on."""
        return bool(self._heard)

    def _pop(self) -> Exchange | None:
        try:
            return self._held.pop()
        except IndexError:
            return None
