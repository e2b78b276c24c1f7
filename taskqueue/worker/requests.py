"""Handle people's requests to a worker and its tasks, from signals and from pings."""

from __future__ import annotations

import logging

from taskqueue.worker.coordinator import Coordinator
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.heartbeat import Heartbeat
from taskqueue.worker.leases import Leases
from taskqueue.worker.shutdown import Shutdown
from taskqueue.worker.state import STOPS
from taskqueue.worker.stopping import Stopper
from taskqueue.worker.wakeup import Signals

logger = logging.getLogger("taskqueue.worker")


class Requests:
    """Makes the worker do what it was asked to do. Only the main thread uses it."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        leases: Leases,
        *,
        coordinator: Coordinator,
        heartbeat: Heartbeat,
        stopper: Stopper,
        signals: Signals,
        shutdown: Shutdown,
    ) -> None:
        self._state = dispatcher.state
        self._dispatcher = dispatcher
        self._pool = dispatcher.pool
        self._leases = leases
        self._coordinator = coordinator
        self._heartbeat = heartbeat
        self._stopper = stopper
        self._signals = signals
        self._shutdown = shutdown

    def take_in(self, now: float) -> None:
        """Apply wanted changes, become quiet or resume, and begin to stop."""
        state, is_quiet = self._state, self._state.request != ""
        if (wanted := state.wanted) is not None and wanted != state.taken_up:
            state.take_up(wanted)
            self._pool.resize()
            self._coordinator.timetable.look_again()
            self._heartbeat.hurry()
        stops = self._signals.count + STOPS.get(state.request, 0)
        if is_quiet != state.is_quiet:
            state.is_quiet = is_quiet
            if is_quiet:
                self._dispatcher.hand_back_waiting()
            else:
                self._coordinator.timetable.look_again()
            self._heartbeat.hurry()
        if stops and not state.is_stopping:
            held = len(self._leases.held)
            logger.info("Stopping, a second signal returns running tasks held=%s", held)
            state.is_stopping = True
            self._shutdown.begin(now)
            self._dispatcher.hand_back_waiting()
            self._heartbeat.hurry()
        if self._shutdown.ends_bodies(stops, now):
            self._dispatcher.end_all(now)

    def take_renewals(self, now: float) -> None:
        """Act on what pings say about leases: that they have ended elsewhere, or must stop."""
        while self._state.renewals:
            renewal = self._state.renewals.popleft()
            # If it has succeeded, its own body recorded it, and its hooks may still be running.
            for lease_id in renewal.ended - renewal.succeeded:
                if lease_id in self._leases.held and not self._coordinator.is_reported(lease_id):
                    self._stopper.drop(lease_id)
                    self._leases.drop(lease_id)
            for stop in renewal.stops:
                reason = stop.reason or "Asked to stop."
                by = f" (by {stop.by})" if stop.by else ""
                self._stopper.ask(stop.lease_id, reason + by, now)
