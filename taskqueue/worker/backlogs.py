"""Let claims start behind long backlogs of definitions that the worker leaves out."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.backlogs import beginnings, paused_definitions, priorities

# If a claim takes more seconds than this, the worker finds out where other tasks begin. The
# threshold grows with the number of claimed tasks.
SLOW_CLAIM, SLOW_TASK = 0.02, 0.0002
USED_FOR = 10.0  # Seconds, until an ordinary claim shows whether it is still needed.
LOOK_SHARE = 0.05  # The most of its time that a worker spends on such looks.
SHORTEST = 0.1  # Seconds for which a result is used at least.
MOST_KNOWN = 4  # The most sets of left-out definitions whose results are kept.

# A queue's priorities, highest first, each with the time from which to claim there.
Levels = Mapping[str, Sequence[tuple[int, datetime | None]]]


class Beginnings(NamedTuple):
    """Where the tasks of queues begin that are not left out."""

    by_queue: dict[str, dict[int, datetime]]
    until: float


class Backlogs:
    """Knows from where to claim while tasks that are left out slow down ordinary claims.

    A task that becomes ready before its queue's beginning waits until the beginning is determined
    again.
    """

    def __init__(self) -> None:
        self._used_until = 0.0
        self._look_at = 0.0  # When to look again for definitions to leave out, if there were none.
        self._known: dict[frozenset[str], Beginnings] = {}

    def took(self, seconds: float, tasks: int) -> None:
        """Record how long an ordinary claim of `tasks` tasks has taken."""
        if seconds > SLOW_CLAIM + tasks * SLOW_TASK:
            self._used_until = time.monotonic() + max(USED_FOR, seconds / LOOK_SHARE)

    def levels(
        self, connection: BaseDatabaseWrapper, names: Collection[str], unknown: Sequence[str]
    ) -> Levels | None:
        """Return where to claim from these queues; None for their heads."""
        now = time.monotonic()
        if now >= self._used_until or (now < self._look_at and not unknown):
            return None
        left_out = paused_definitions(connection) | frozenset(unknown)
        if not left_out:
            # Something else, such as the disk, has slowed that claim down. The next slow one shows.
            self._used_until, self._look_at = 0.0, now + SHORTEST
            return None
        found = self._beginnings(connection, names, left_out)
        return {
            # A priority that is new since then has no backlog yet.
            name: [
                (priority, found[name].get(priority)) for priority in priorities(connection, name)
            ]
            for name in names
        }

    def _beginnings(
        self, connection: BaseDatabaseWrapper, names: Collection[str], left_out: frozenset[str]
    ) -> dict[str, dict[int, datetime]]:
        began = time.monotonic()
        known = self._known.pop(left_out, Beginnings({}, 0.0))
        if began >= known.until or not known.by_queue.keys() >= set(names):
            by_queue = {name: beginnings(connection, name, left_out) for name in names}
            ended = time.monotonic()
            known = Beginnings(by_queue, ended + max(SHORTEST, (ended - began) / LOOK_SHARE))
        # The latest goes last: the first is the next to be dropped.
        self._known[left_out] = known
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return known.by_queue
