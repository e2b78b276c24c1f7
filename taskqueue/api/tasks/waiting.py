"""Wait within a request: read, release connections, sleep, and read again.

Each wait occupies a thread of the web server, so only few requests may wait at a time: the rest of
the site needs threads too.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from rest_framework.request import Request

from taskqueue.api.base import ApiView
from taskqueue.conf import get_settings
from taskqueue.results.handle import LONGEST_PAUSE, growing_pauses

# Seconds: proxies cut off connections that are silent for longer.
LONGEST_WAIT = 60
# How many requests may wait at a time in a process, unless the setting API_LONG_POLLS says
# otherwise. Under ASGI each request gets its own thread; under WSGI they come from a pool, often of
# four.
MOST_UNDER_ASGI, MOST_UNDER_WSGI = 16, 2
# How many of these waits one user may have; never more than half.
MOST_OF_ONE = 4
# Seconds after which a client should retry a request that could not wait.
RETRY_AFTER = 5
T = TypeVar("T")


class Seats:
    """The requests that wait in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken: Counter[object] = Counter()

    @contextmanager
    def seat(self, user: Any, most: int) -> Iterator[bool]:
        """Yield whether this user may wait in the block, if at most `most` requests may wait."""
        who, of_one = user.pk, min(MOST_OF_ONE, (most + 1) // 2)
        with self._lock:
            has_seat = self._taken[who] < of_one and self._taken.total() < most
            if has_seat:
                self._taken[who] += 1
        try:
            yield has_seat
        finally:
            if has_seat:
                with self._lock:
                    self._taken -= Counter([who])  # Removes users without waits.


SEATS = Seats()


def most_waits(request: Request) -> int:
    """Return how many requests may wait at a time in this process.

    None may wait in a WSGI server without threads, which would serve no other request.
    """
    chosen = get_settings().API_LONG_POLLS
    if chosen is not None:
        return chosen
    if isinstance(request._request, ASGIRequest):
        return MOST_UNDER_ASGI
    return MOST_UNDER_WSGI if request.META.get("wsgi.multithread") else 0


def waited(
    view: ApiView, look: Callable[[], T], is_enough: Callable[[T], bool], seconds: float
) -> T:
    """Return the result of `look` when it is sufficient or the time is over.

    If too many requests are waiting already, return the present result, and tell the client when to
    try again.
    """
    seen = look()
    if not seconds or is_enough(seen):
        return seen
    with SEATS.seat(view.request.user, most_waits(view.request)) as has_seat:
        if not has_seat:
            view.headers["Retry-After"] = str(RETRY_AFTER)
            return seen
        for pause in growing_pauses(seconds):
            if not pause or is_enough(seen):
                break
            if pause >= LONGEST_PAUSE:
                _let_go()
            time.sleep(pause)
            seen = look()
    return seen


def _let_go() -> None:
    """Close connections that the project does not keep between requests, because many may wait.

    Connections in a transaction, such as a test's, stay open. Those of SQLite block nobody.
    """
    for connection in connections.all(initialized_only=True):
        is_kept = connection.settings_dict.get("CONN_MAX_AGE") != 0  # A pool asks for 0, too.
        is_free = connection.autocommit and not connection.in_atomic_block
        if is_free and not is_kept and connection.vendor != "sqlite":
            connection.close()
