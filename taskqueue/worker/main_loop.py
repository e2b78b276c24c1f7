"""The main thread of a worker: it claims, hands out, records. It runs no code of the project."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from taskqueue.worker.children import ChildProcess
from taskqueue.worker.coordinator import LONGEST_SLEEP, Coordinator
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.heartbeat import Heartbeat
from taskqueue.worker.leases import Leases
from taskqueue.worker.options import WorkerOptions
from taskqueue.worker.receiving import Receiver
from taskqueue.worker.requests import Inbox
from taskqueue.worker.shutdown import Signals
from taskqueue.worker.stopping import Stopper
from taskqueue.worker.summary import Summary
from taskqueue.worker.wakeup import Reloader, Watch
from taskqueue.worker.watchdog import Watchdog

logger = logging.getLogger("taskqueue.worker")

# Seconds to wait for a database that is away, only to say that the worker has ended.
REPORT_TIMEOUT = 3.0
REBALANCE_INTERVAL = 0.02  # Seconds between two looks at orders that wait behind a body.


@dataclass(kw_only=True, eq=False)
class MainLoop:
    """Serves the children; requests to the database and pings have threads of their own."""

    options: WorkerOptions
    signals: Signals
    inbox: Inbox
    heartbeat: Heartbeat
    database: DatabaseThread
    coordinator: Coordinator
    leases: Leases
    dispatcher: Dispatcher
    receiver: Receiver
    stopper: Stopper
    watchdog: Watchdog
    summary: Summary
    watch: Watch
    reloader: Reloader | None = None
    _stop_at: float | None = None  # When the time to shut down in is over.
    # The socket of the database connection, while it is watched for notifications.
    _listener: int | None = None

    def __post_init__(self) -> None:
        self._pool, self._mode = self.dispatcher.pool, self.dispatcher.mode

    def run(self) -> None:
        """Take in what came, act on what is due, and sleep until something happens."""
        while not self.inbox.is_replaced:
            now = time.monotonic()
            self._take_in(now)
            self._act(now)
            if self._is_done:
                return
            self._sleep()

    def populate(self, now: float) -> None:
        """Replace and start children."""
        if self.reloader and self.reloader.has_changed():
            logger.info("Code changed, children are replaced file=%s", self.reloader.changed)
            self._pool.recycle()
        self._pool.retire()
        self.watchdog.ensure(now)
        for child in self._pool.populate(now):
            self.watch.add(child.socket, self._on_readable(child))

    # Taking in what came

    def _take_in(self, now: float) -> None:
        self.inbox.vitals.turned(now)
        self._take_requests(now)
        self._take_report(now)
        self._take_renewals(now)

    def _take_requests(self, now: float) -> None:
        mode, is_quiet = self._mode, self.inbox.is_asked_to_be_quiet
        stops = self.signals.count + self.inbox.stops
        if is_quiet != mode.is_quiet:
            mode.is_quiet = is_quiet
            if mode.is_quiet:
                self.dispatcher.hand_back_waiting()
            else:
                self.coordinator.look_again()
            self.heartbeat.hurry()
        if stops and not mode.is_stopping:
            held = len(self.leases.held)
            logger.info("Stopping, a second signal returns running tasks held=%s", held)
            mode.is_stopping = True
            self._stop_at = now + self.options.shutdown_timeout
            self.dispatcher.hand_back_waiting()
            self.heartbeat.hurry()
        if self._stop_at is not None and (stops > 1 or now >= self._stop_at):
            self._stop_at = None
            self.dispatcher.end_all(now)

    def _take_report(self, now: float) -> None:
        # A request answers what was heard before its report.
        if self.inbox.take_heard():
            self.coordinator.look_again()
        jobs = self.coordinator.take_in(now)
        if jobs is None:
            return
        self.dispatcher.add(jobs)
        if any(job.ping_seconds is not None or job.lease_seconds is not None for job in jobs):
            self.heartbeat.hurry()
        self._watch_listener()

    def _take_renewals(self, now: float) -> None:
        for renewal in self.inbox.take_renewals():
            # One that has succeeded was recorded by its own body, whose hooks may still run.
            for lease_id in renewal.ended - renewal.succeeded:
                if lease_id in self.leases.held and not self.coordinator.is_reported(lease_id):
                    self.stopper.drop(lease_id)
                    self.leases.drop(lease_id)
            for stop in renewal.stops:
                reason = stop.reason or "Asked to stop."
                by = f" (by {stop.by})" if stop.by else ""
                self.stopper.ask(stop.lease_id, reason + by, now)

    # Acting on what is due

    def _act(self, now: float) -> None:
        self.populate(now)
        self.stopper.enforce(now)
        self.summary.step(now)
        self._pool.relax(now)
        self.dispatcher.rebalance(now)
        self.dispatcher.dispatch(now)
        if self.coordinator.is_due(now):
            self._ignore_listener()
            self.coordinator.send(now)

    @property
    def _is_done(self) -> bool:
        coordinator = self.coordinator
        if coordinator.is_waiting:
            return False
        if self._mode.is_stopping:
            # Waiting for a database that is away ends with the time to shut down in, and sooner
            # where it is only to be told that the worker ends.
            return coordinator.is_settled or (coordinator.is_away and self._has_waited)
        return self.options.drain and (coordinator.is_drained or self.is_hopeless)

    @property
    def _has_waited(self) -> bool:
        if self._stop_at is None:
            return True
        began_at = self._stop_at - self.options.shutdown_timeout
        return not self.coordinator.has_work and time.monotonic() - began_at >= REPORT_TIMEOUT

    @property
    def is_hopeless(self) -> bool:
        """Whether it was to drain, and no child starts that could."""
        return self.options.drain and self._pool.is_broken and self.coordinator.is_settled

    # Sleeping

    def _sleep(self) -> None:
        now = time.monotonic()
        for on_ready in self.watch.wait(min(self._moments(now)) - now):
            on_ready()
        self._watch_outgoing()

    def _moments(self, now: float) -> Iterator[float]:
        """When something is to be done, if nothing happens before."""
        yield now + LONGEST_SLEEP
        if self.dispatcher.has_waiting:
            yield now + REBALANCE_INTERVAL
        for moment in (
            self._pool.respawn_at,
            self._stop_at,
            self.stopper.next_limit(),
            self._pool.next_deadline(now),
        ):
            if moment is not None:
                yield moment
        if not self.coordinator.is_waiting:
            yield self.coordinator.next_at(now)

    def _on_readable(self, child: ChildProcess) -> Callable[[], None]:
        def on_ready() -> None:
            child.push()
            was_ready = child.is_ready
            self.receiver.receive(child, time.monotonic(), self.watch.remove)
            if self.reloader and child.is_ready and not was_ready:
                self.reloader.watch(child.files)

        return on_ready

    def _watch_outgoing(self) -> None:
        for child in self._pool.children:
            if child.has_outgoing or child.is_blocked:
                child.is_blocked = child.has_outgoing
                self.watch.add(child.socket, self._on_readable(child), writes=child.is_blocked)

    def _watch_listener(self) -> None:
        """Watch the database connection for notifications between two requests."""
        if self.database.listener is not None:
            self._listener = self.database.listener.fileno()
            self.watch.add(self._listener, self._on_notification)

    def _ignore_listener(self) -> None:
        if self._listener is not None:
            self.watch.remove(self._listener)
            self._listener = None

    def _on_notification(self) -> None:
        if error := self.database.hear():
            self._ignore_listener()
            self.coordinator.on_outage(error, time.monotonic())
