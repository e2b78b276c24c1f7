"""The options of a worker, and the state that its threads share."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from taskqueue.conf import Settings
from taskqueue.core.log_text import one_line
from taskqueue.declarations.serving import (
    definition_slots_text,
    parse_definition_slots,
    parse_queues,
)
from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.registration import Registered, Registration
from taskqueue.engine.rows import Renewal
from taskqueue.engine.workers import Asked, Terms, Wanted
from taskqueue.models.worker import WorkerRequest, WorkerStatus
from taskqueue.worker.limits import SlotLimits
from taskqueue.worker.meter import Meter
from taskqueue.worker.quotas import QueueQuotas

logger = logging.getLogger("taskqueue.worker")

# How many stopping signals a request corresponds to.
STOPS: dict[str, int] = {WorkerRequest.STOP: 1, WorkerRequest.KILL: 2}


class WorkerState:
    """Whether a worker takes tasks, and what was asked of it. The main thread changes the modes.

    Pings and notifications store what they found here, and wake the main thread.
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
        self.presence: int | None = None  # The open file with the lock that children hold too.
        self.is_stopping = False
        self.is_quiet = False  # Whether it finishes running tasks, and stays.
        # Whether another worker has this one's name: this one ends, and writes nothing more.
        self.is_replaced = False
        # Whether this worker has recorded that an enqueue must wake it.
        self.is_idle = False
        self.heard: deque[str] = deque()  # The payloads of notifications.
        self.request = ""
        self.concurrency = options.concurrency
        self.queues = options.queues
        self.limits = SlotLimits(options.queues, options.definition_slots)
        # The changes that people last asked for, and those that the main thread has applied.
        self.wanted: Wanted | None = None
        self.taken_up: Wanted | None = None
        # The kinds of events that anybody wants, separated by spaces; None if not known yet.
        self.wanted_events: str | None = None
        self.renewals: deque[Renewal] = deque()  # Pings that found something to do.

    @property
    def takes_tasks(self) -> bool:
        """Whether anything may be claimed or started."""
        return not (self.is_stopping or self.is_quiet)

    @property
    def status(self) -> WorkerStatus:
        """The status in the worker's row."""
        if self.is_stopping:
            return WorkerStatus.STOPPING
        return WorkerStatus.QUIET if self.is_quiet else WorkerStatus.RUNNING

    def take_heard(self) -> set[str]:
        """Return the payloads of notifications that arrived since this was last asked."""
        heard = set()
        while self.heard:
            heard.add(self.heard.popleft())
        return heard

    def check_idle(self, *, is_idle: bool) -> None:
        """Look for tasks again if a ping finds that enqueues do not wake this worker any more.

        A worker that was silent for too long is marked as lost, and so as not idle.
        """
        if self.is_idle and not is_idle:
            self.is_idle = False
            self.heard.append(ANYWHERE)
            self.wake()

    def set_wanted(self, wanted: Wanted | None) -> None:
        """Store a change that a ping brought, for the main thread to apply."""
        if wanted is not None and wanted != self.wanted:
            self.wanted = wanted
            self.wake()

    def take_up(self, wanted: Wanted) -> None:
        """Apply a wanted change from now on."""
        if wanted.concurrency is not None:
            self.concurrency = wanted.concurrency
        if wanted.queues is not None:
            self.queues.change(parse_queues(wanted.queues, source="queues"))
        if wanted.strict is not None:
            self.queues.is_strict = wanted.strict
        if wanted.definition_slots is not None:
            self.limits.definitions = parse_definition_slots(
                wanted.definition_slots, source="definition_slots"
            )
        self.taken_up = wanted
        logger.info(
            "Changed concurrency=%s queues=%s strict=%s definition_slots=%s",
            self.concurrency, self.queues.choice or "all", self.queues.is_strict,
            definition_slots_text(self.limits.definitions) or "none",
        )  # fmt: skip

    @property
    def terms(self) -> Terms:
        """Return its slots and queues, as its row shows them."""
        return {
            "concurrency": self.concurrency,
            "queues": self.queues.weights,
            "queue_slots": self.queues.slots,
            "queue_order": list(self.queues.weights),
            "is_strict": self.queues.is_strict,
            "definition_slots": self.limits.of_definitions,
        }

    def set_request(self, asked: Asked) -> None:
        """Store the request of a ping; the database keeps a weaker one from replacing it.

        Only a request to be quiet can be withdrawn.
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


def this_host() -> str:
    """Return the name of this host, as a worker's row shows it."""
    return socket.gethostname()[:255]


def default_name() -> str:
    """Return a name that no other worker has, from host, process and a random part."""
    return f"{this_host()[:100]}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The flags of `runworker`. Times are in seconds, memory is in megabytes."""

    queues: QueueQuotas = field(default_factory=lambda: QueueQuotas())
    concurrency: int = 1
    tags: tuple[str, ...] = ()
    pool: str = "process"
    name: str = field(default_factory=default_name)
    drain: bool = False
    max_tasks: int | None = None
    max_memory: float | None = None
    shutdown_timeout: float = 30.0
    poll_interval: float | None = None
    reload: bool = False
    show_progress: bool = False
    # The most slots that a definition may have, by name.
    definition_slots: Mapping[str, int] = field(default_factory=dict)
