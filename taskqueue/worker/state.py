"""The state of a worker that its threads share: whether it takes tasks, and what it was asked."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from taskqueue.conf import Settings
from taskqueue.core.log_text import one_line
from taskqueue.engine.rows import Renewal
from taskqueue.engine.workers import Asked, Registered, Registration
from taskqueue.models.worker import WorkerRequest, WorkerStatus
from taskqueue.worker.meter import Meter
from taskqueue.worker.options import WorkerOptions

logger = logging.getLogger("taskqueue.worker")

# How many stopping signals a request stands for.
STOPS = {"": 0, WorkerRequest.QUIET: 0, WorkerRequest.STOP: 1, WorkerRequest.KILL: 2}


class WorkerState:
    """The main thread changes the modes, every thread reads them.

    Pings and notifications leave here what they found, and wake the main thread.
    """

    registration: Registration
    registered: Registered  # Both are known before any thread starts.

    def __init__(
        self, options: WorkerOptions, settings: Settings, meter: Meter, wake: Callable[[], None]
    ) -> None:
        self.options = options
        self.settings = settings
        self.lease_seconds = settings.LEASE_DURATION.total_seconds()
        self.meter = meter
        self.vitals = meter.vitals
        self.wake = wake
        self.presence: int | None = None  # The file that children hold locked, as this process.
        self.is_stopping = False
        self.is_quiet = False  # Whether it finishes what runs, and stays.
        # Whether another worker has this one's name: this one ends, and writes nothing more.
        self.is_replaced = False
        self.has_heard = False  # Whether something was enqueued.
        self.request = ""
        self.renewals: deque[Renewal] = deque()  # Pings that found something to do.

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

    def set_request(self, asked: Asked) -> None:
        """Keep the request of a ping; the database keeps a weaker one from replacing it.

        A request to be quiet is the only one that can be taken back.
        """
        if asked.request == self.request:
            return
        if asked.request:
            by, reason = one_line(asked.by), one_line(asked.reason)
            logger.info("Request received request=%s by=%s reason=%s", asked.request, by, reason)
        elif self.request == WorkerRequest.QUIET:
            logger.info("Resumed")
        else:
            return
        self.request = asked.request
        self.wake()
