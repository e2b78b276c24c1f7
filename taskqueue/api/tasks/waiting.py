"""Waiting within a request: look, let go of what others may need, sleep, look again.

Each wait holds a thread of the web server, so few may wait at a time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from django.db import connections

from taskqueue.results.waiting import LONGEST_PAUSE, Pauses

LONGEST_WAIT = 60
"""Seconds: proxies cut off what is silent for longer."""
MOST_OF_ONE, MOST_IN_ALL = 4, 16
"""How many waits of one user, and of all, a process bears at a time."""
T = TypeVar("T")


class Seats:
    """The places of those who wait in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken: Counter[object] = Counter()

    @contextmanager
    def seat(self, user: Any) -> Iterator[bool]:
        """A place for the time of the block; False where none is free for this user."""
        who = user.pk
        with self._lock:
            has_seat = self._taken[who] < MOST_OF_ONE and self._taken.total() < MOST_IN_ALL
            if has_seat:
                self._taken[who] += 1
        try:
            yield has_seat
        finally:
            if has_seat:
                self._leave(who)

    def _leave(self, who: object) -> None:
        with self._lock:
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]


SEATS = Seats()


def waited(look: Callable[[], T], is_enough: Callable[[T], bool], seconds: float, user: Any) -> T:
    """What is seen once it is enough, or when the time is over.

    Where too many wait already, what is seen now.
    """
    seen = look()
    if not seconds or is_enough(seen):
        return seen
    with SEATS.seat(user) as has_seat:
        pauses = Pauses(seconds if has_seat else 0)
        while not is_enough(seen):
            try:
                pause = pauses.next("It waits")
            except TimeoutError:
                break
            if pause >= LONGEST_PAUSE:
                _let_go()
            time.sleep(pause)
            seen = look()
    return seen


def _let_go() -> None:
    """Give back the connections that the project would not keep beyond a request: many may wait.

    Those within a transaction, such as a test's, are kept. SQLite's hold nothing that others need.
    """
    for connection in connections.all(initialized_only=True):
        is_kept = connection.settings_dict.get("CONN_MAX_AGE") != 0  # A pool asks for 0, too.
        is_free = connection.autocommit and not connection.in_atomic_block
        if is_free and not is_kept and connection.vendor != "sqlite":
            connection.close()
