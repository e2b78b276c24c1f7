"""The options of a worker, and the state that its threads share."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from taskqueue.conf import Settings
from taskqueue.core.log_text import one_line
from taskqueue.declarations.option_kinds import QUEUE_NAME
from taskqueue.engine.rows import Renewal
from taskqueue.engine.workers import Asked, Registered, Registration
from taskqueue.exceptions import InvalidTask
from taskqueue.models.worker import WorkerRequest, WorkerStatus
from taskqueue.worker.meter import Meter

logger = logging.getLogger("taskqueue.worker")

# How many stopping signals a request stands for.
STOPS: dict[str, int] = {WorkerRequest.STOP: 1, WorkerRequest.KILL: 2}


class WorkerState:
    """Whether a worker takes tasks, and what it was asked. The main thread changes the modes.

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
        self.heard: deque[str] = deque()  # The payloads of notifications.
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

    def take_heard(self) -> set[str]:
        """The payloads of the notifications that arrived since this was last asked."""
        heard = set()
        while self.heard:
            heard.add(self.heard.popleft())
        return heard

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


Quotas = list[tuple[str, int]]


def default_name() -> str:
    """A name that no other worker has: host, process and chance."""
    return f"{socket.gethostname()[:100]}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The flags of `runworker`. Times in seconds, memory in megabytes."""

    queues: QueueQuotas = field(default_factory=lambda: QueueQuotas())
    concurrency: int = 1
    pool: str = "process"
    name: str = field(default_factory=default_name)
    drain: bool = False
    max_tasks: int | None = None
    max_memory: float | None = None
    shutdown_timeout: float = 30.0
    poll_interval: float | None = None
    reload: bool = False
    show_progress: bool = False


class QueueQuotas:
    """The queues of `--queues` and `--strict`, and what a claim takes from each.

    Without weights: all queues, alike. Weighted: smooth weighted round robin, as nginx does it
    (https://github.com/nginx/nginx/commit/52327e0627f49dbda1e8db695e63a4b0af4448b1): every queue
    gains its weight in each round, the richest is served and pays the sum of the weights.
    """

    def __init__(self, weights: dict[str, int] | None = None, *, is_strict: bool = False) -> None:
        self.weights = weights or {}
        self._is_strict = is_strict
        self._credits: dict[str, int] = {}

    @classmethod
    def parse(cls, text: str, *, is_strict: bool = False) -> QueueQuotas:
        """Read `critical=6,default=3,low`. Raises `InvalidTask`."""
        weights: dict[str, int] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, weight = part.partition("=")
            if not QUEUE_NAME.fullmatch(name):
                raise InvalidTask(f"{name!r} is not the name of a queue.")
            if name in weights:
                raise InvalidTask(f"The queue {name!r} is listed twice in --queues.")
            if weight and not (weight.isdecimal() and 1 <= int(weight) <= 1_000_000):
                raise InvalidTask(
                    f"The weight of {name!r} must be a whole number from 1 to 1000000, "
                    f"not {weight!r}."
                )
            weights[name] = int(weight or 1)
        if text and not weights:
            raise InvalidTask(f"--queues {text!r} names no queue; omit it to serve all.")
        if is_strict and not weights:
            raise InvalidTask("--strict needs --queues: it empties them in their order.")
        return cls(weights, is_strict=is_strict)

    def serving(self, ready: Iterable[str]) -> list[str]:
        """Of the queues that have tasks, those that this worker serves, in its order."""
        names = set(ready)
        return [name for name in self.weights or sorted(names) if name in names]

    def is_outranked(self, names: Sequence[str]) -> bool:
        """Whether a queue goes before all of these, however little waits in it."""
        return self._is_strict and names[:1] != list(self.weights)[:1]

    def quotas(self, names: Sequence[str], size: int) -> Quotas:
        """How many of `size` tasks to take from each of these queues."""
        if not names or size <= 0:
            return []
        if len(names) == 1 or self._is_strict:
            return [(names[0], size)]
        weights = {name: self.weights.get(name, 1) for name in names}
        total = sum(weights.values())
        rounds, rest = divmod(size, total)
        # Whole rounds serve each queue by its weight and leave the credits as they were.
        quotas = {name: weight * rounds for name, weight in weights.items()}
        for _ in range(rest):
            for name, weight in weights.items():
                self._credits[name] = self._credits.get(name, 0) + weight
            richest = max(names, key=lambda name: self._credits[name])
            self._credits[richest] -= total
            quotas[richest] += 1
        return [(name, quota) for name, quota in quotas.items() if quota]
