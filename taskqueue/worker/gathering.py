"""Leaving places under limits to other workers, so that they pass on in larger batches."""

from __future__ import annotations

import random

# Seconds for which a worker leaves them: by then those that have room have looked.
REST = 0.2
# Seconds, in the mean, until a worker leaves them for the first time. Each time it doubles: where
# nobody has room for them, they are not in use for a rest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class Gathering:
    """Decides by how long requests take.

    A batch of passed places costs much beside its tasks. While a request takes longer than the
    bodies of as many tasks as a worker may hold, the database or the host is what is busy, and
    fewer workers with more places each do the same work in fewer batches. Otherwise more workers
    run more bodies at once.
    """

    def __init__(self) -> None:
        self.seconds = 0.0  # How long the last request under limits took.
        self.rests_until = 0.0
        self._pause = FIRST_PAUSE
        self._next_at: float | None = None

    def rests(self, now: float) -> bool:
        """Whether the worker takes no places at this moment."""
        return now < self.rests_until

    def leaves(self, places: int, *, most: int, slots: int, body: float, now: float) -> bool:
        """Whether the worker leaves its places from now on, of which it may have `most`.

        `body` is how many seconds bodies take.
        """
        is_small = 2 * places <= most
        if not is_small or self.seconds <= body * most / slots:
            return False
        if self._next_at is None:
            self._next_at = now + self._by_chance()
        if now < self._next_at:
            return False
        self.rests_until = now + REST
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        self._next_at = now + REST + self._by_chance()
        return True

    def _by_chance(self) -> float:
        # Workers that leave theirs at the same time would wait for each other.
        return self._pause * random.uniform(0.5, 1.5)  # noqa: S311
