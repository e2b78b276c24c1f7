"""What is asked of a worker from outside: by people, who ask in the database."""

from __future__ import annotations

import logging
from collections.abc import Callable

from taskqueue.core.log_text import one_line
from taskqueue.engine.workers import Asked
from taskqueue.models.worker import WorkerRequest

logger = logging.getLogger("taskqueue.worker")

STOPS = {WorkerRequest.STOP: 1, WorkerRequest.KILL: 2}
"""To how many stopping signals a request comes."""


class Requests:
    """Keeps the strongest request; the heartbeat brings them, the main thread heeds them."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._request = ""

    def take(self, asked: Asked) -> None:
        """Take in what a ping brought; the database keeps a weaker one from replacing it."""
        if asked.request == self._request:
            return
        if not asked.request:
            self._resume()
            return
        by, reason = one_line(asked.by), one_line(asked.reason)
        logger.info("Asked request=%s by=%s reason=%s", asked.request, by, reason)
        self._request = asked.request
        self._ring()

    def _resume(self) -> None:
        """Forget that it was asked to be quiet: that alone can be taken back."""
        if self._request == WorkerRequest.QUIET:
            logger.info("Resumed")
            self._request = ""
            self._ring()

    @property
    def is_quiet(self) -> bool:
        """Whether the worker is to claim nothing more."""
        return self._request != ""

    @property
    def stops(self) -> int:
        """How many stopping signals were sent, as it were."""
        return STOPS.get(WorkerRequest(self._request), 0) if self._request else 0
