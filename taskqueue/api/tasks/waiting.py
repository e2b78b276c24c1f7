"""Waiting within a request: look, let go of what others may need, sleep, look again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from taskqueue.engine.connections import project_connection
from taskqueue.results.waiting import LONGEST_PAUSE, Pauses

LONGEST_WAIT = 60
"""Seconds: proxies cut off what is silent for longer."""
T = TypeVar("T")


def waited(look: Callable[[], T], is_enough: Callable[[T], bool], seconds: float) -> T:
    """What is seen once it is enough, or when the time is over."""
    pauses = Pauses(seconds)
    while True:
        seen = look()
        if is_enough(seen):
            return seen
        try:
            pause = pauses.next("It waits")
        except TimeoutError:
            return seen
        if pause >= LONGEST_PAUSE:
            _let_go()
        time.sleep(pause)


def _let_go() -> None:
    """Give a connection back that the project would not keep beyond a request: many may wait.

    Within a transaction, such as a test's, it is kept.
    """
    connection = project_connection()
    is_kept = connection.settings_dict.get("CONN_MAX_AGE") != 0  # A pool asks for 0, too.
    if not is_kept and not connection.in_atomic_block and connection.vendor == "postgresql":
        connection.close()
