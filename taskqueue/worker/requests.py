"""What pings bring: requests of people and ended leases; and whether the worker takes tasks."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator

from taskqueue.core.log_text import one_line
from taskqueue.engine.rows import Renewal
from taskqueue.engine.workers import Asked
from taskqueue.models.worker import WorkerRequest, WorkerStatus
from taskqueue.worker.vitals import Vitals

logger = logging.getLogger("taskqueue.worker")

# How many stopping signals a request stands for.
STOPS = {WorkerRequest.STOP: 1, WorkerRequest.KILL: 2}


class Mode:
    """Whether the worker takes tasks. The main thread changes it, every thread reads it."""

    def __init__(self) -> None:
        self.is_stopping = False
        self.is_quiet = False  # Whether it finishes what runs, and stays.

    @property
    def takes_tasks(self) -> bool:
        """Whether anything may be claimed, or started."""
        return not (self.is_stopping or self.is_quiet)

    @property
    def status(self) -> WorkerStatus:
        """The status in the worker's row."""
        if self.is_stopping:
            return WorkerStatus.STOPPING
        return WorkerStatus.QUIET if self.is_quiet else WorkerStatus.RUNNING


class Inbox:
    """The results of pings and notifications, left for the main thread."""

    def __init__(self, wake: Callable[[], None], vitals: Vitals) -> None:
        self._wake = wake
        self._renewals: deque[Renewal] = deque()
        self._request = ""
        self._has_heard = False
        self.vitals = vitals
        # Whether another worker has this one's name: this one ends, and writes nothing more.
        self.is_replaced = False

    # From the heartbeat

    def add_renewal(self, renewal: Renewal) -> None:
        """Keep what a ping found, if there is something to do."""
        if renewal.ended or renewal.stops:
            self._renewals.append(renewal)
            self._wake()

    def set_request(self, asked: Asked) -> None:
        """Keep the request of a ping; the database keeps a weaker one from replacing it.

        A request to be quiet is the only one that can be taken back.
        """
        if asked.request == self._request:
            return
        if asked.request:
            by, reason = one_line(asked.by), one_line(asked.reason)
            logger.info("Request received request=%s by=%s reason=%s", asked.request, by, reason)
        elif self._request == WorkerRequest.QUIET:
            logger.info("Resumed")
        else:
            return
        self._request = asked.request
        self._wake()

    def set_replaced(self) -> None:
        """Another worker has this one's name."""
        self.is_replaced = True
        self._wake()

    # From the thread that uses the database connection

    def hear(self) -> None:
        """Something was enqueued."""
        self._has_heard = True

    # In the main thread

    def take_renewals(self) -> Iterator[Renewal]:
        """Take what pings found."""
        while self._renewals:
            yield self._renewals.popleft()

    def take_heard(self) -> bool:
        """Whether something was enqueued since this was last asked."""
        if not self._has_heard:
            return False
        self._has_heard = False
        return True

    @property
    def is_asked_to_be_quiet(self) -> bool:
        """Whether the worker is to claim nothing more."""
        return self._request != ""

    @property
    def stops(self) -> int:
        """How many stopping signals the request stands for."""
        return STOPS.get(WorkerRequest(self._request), 0) if self._request else 0
