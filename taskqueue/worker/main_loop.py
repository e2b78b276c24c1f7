"""The main thread of a worker: it claims, dispatches and records, and runs no project code."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from taskqueue.engine.notify import STOP
from taskqueue.engine.tally import Tally
from taskqueue.worker.child_sockets import ChildSockets
from taskqueue.worker.coordinator import LONGEST_SLEEP, Coordinator
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.examiner import Examiner
from taskqueue.worker.heartbeat import Heartbeat
from taskqueue.worker.late_imports import LateImports
from taskqueue.worker.leases import Leases
from taskqueue.worker.meter import Summary
from taskqueue.worker.receiving import Receiver
from taskqueue.worker.recorder import Recorder
from taskqueue.worker.requests import Requests
from taskqueue.worker.shutdown import Shutdown
from taskqueue.worker.standing import StandingClaim
from taskqueue.worker.state import WorkerState, this_host
from taskqueue.worker.stopping import Stopper
from taskqueue.worker.wakeup import Reloader, Signals, WakePipe, Watch
from taskqueue.worker.watchdog import Watchdog
from taskqueue.worker.worker_session import WorkerSession
from taskqueue.worker.workflows import StepEnds

if TYPE_CHECKING:
    from taskqueue.worker.duties import Duties

logger = logging.getLogger("taskqueue.worker")

# Seconds that a thread goes on while another waits for its turn. The database thread needs only a
# moment between two statements, and until then the server is idle.
SWITCH_INTERVAL = 0.0003
GARBAGE = 20_000  # New objects after which the garbage collector runs.
GATHER = 0.003  # Seconds between two looks at children that have enough to do.
# Seconds after which a turn of the duties leaves periodic ones to the next turn, with claims and
# records in between. For a new worker all of them are due.
TIMED_SECONDS = 0.02
REBALANCE_INTERVAL = 0.02  # Seconds between two looks at orders that wait behind a body.


class MainLoop:
    """Serves the children; requests to the database and pings have separate threads."""

    def __init__(
        self, dispatcher: Dispatcher, watchdog: Watchdog, signals: Signals, wake_pipe: WakePipe
    ) -> None:
        self._state = state = dispatcher.state
        self._dispatcher = dispatcher
        self._pool = dispatcher.pool
        self._watchdog = watchdog
        self._leases = Leases(state)
        self._heartbeat = Heartbeat(state, self._pool, self._leases)
        tally, batch_tally = Tally(self._leases.subject_of), Tally(self._leases.subject_of)
        session = WorkerSession(state, heard=self._hear, tally=tally)
        batch_session = WorkerSession(state, heard=None, tally=batch_tally)
        self._examiner = Examiner(worker_name=state.options.name, host=this_host())
        make_duties = partial(_make_duties, state, tally, self._examiner)
        imports = LateImports()
        step_ends = StepEnds(imports)
        standing = StandingClaim(state.heard, self._queues_to_claim)
        self._database = DatabaseThread(
            session,
            state.wake,
            make_duties,
            imports=imports,
            step_ends=step_ends,
            standing=standing,
        )
        self._batches = DatabaseThread(
            batch_session, state.wake, imports=imports, step_ends=step_ends
        )
        self._recorder = Recorder(self._batches, dispatcher, self._database)
        self._coordinator = Coordinator(dispatcher, self._leases, self._database, self._recorder)
        self._stopper = Stopper(dispatcher)
        self.summary = Summary(state.meter, time.monotonic())
        self._wake_pipe = wake_pipe
        self._switch_interval, self._thresholds = sys.getswitchinterval(), gc.get_threshold()
        self._watch = Watch()
        self._watch.add(wake_pipe, wake_pipe.clear)
        self._reloader = Reloader(state.wake) if state.options.reload else None
        self._sockets = ChildSockets(self._watch, Receiver(dispatcher), self._reloader)
        threads, timeout = (self._database, self._batches), state.options.shutdown_timeout
        self._shutdown = Shutdown(self._coordinator, threads, timeout=timeout)
        self._requests = Requests(
            dispatcher, self._leases,
            coordinator=self._coordinator, heartbeat=self._heartbeat, stopper=self._stopper,
            signals=signals, shutdown=self._shutdown,
        )  # fmt: skip

    def start(self) -> None:
        """Start the children, once their template has loaded, and the heartbeat."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        # Existing objects stay; what comes and goes from here on has no cycles.
        gc.freeze()
        gc.set_threshold(GARBAGE)
        self._coordinator.begin(time.monotonic())
        self._populate(time.monotonic())
        self._heartbeat.thread.start()
        self._state.vitals.begin(
            lease_seconds=self._state.lease_seconds,
            threads=[self._heartbeat.thread, self._database.thread, self._batches.thread],
            obstacle=self._obstacle,
        )

    def end(self) -> bool:
        """End the threads and children. Return whether something could not be written."""
        self._state.vitals.end()
        self._heartbeat.stop()
        self._pool.end()
        self._database.stop()
        self._examiner.end()
        self._batches.stop()
        self._watch.close()
        self._leases.end()
        sys.setswitchinterval(self._switch_interval)
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()
        return self._coordinator.has_work

    def _obstacle(self) -> str:
        """Return why the worker takes no tasks; empty if it does.

        Called from the thread of a port.
        """
        pool, state = self._pool, self._state
        if not state.takes_tasks or state.is_replaced:
            return state.status.value
        if not pool.is_guarded:
            return "no guardian can be started"
        return pool.trouble or ("" if pool.ready else "no child takes orders")

    def _hear(self, payload: str) -> None:
        """Keep a notification, in the database thread."""
        if payload == STOP:
            self._heartbeat.hurry()
        else:
            self._state.heard.append(payload)

    def run(self) -> None:
        """Enter what has arrived, do what is due, and sleep until something happens."""
        while not self._state.is_replaced:
            now = time.monotonic()
            self._state.vitals.turned(now)
            self._requests.take_in(now)
            self._take_report(now)
            self._requests.take_renewals(now)
            self._act(now)
            if self._is_done:
                return
            self._sleep()

    def _populate(self, now: float) -> None:
        """Replace and start children."""
        if self._reloader and (changed := self._reloader.take_changed()):
            logger.info("Code changed, children are replaced file=%s", changed)
            self._pool.recycle()
        self._pool.retire()
        self._watchdog.ensure(now)
        for child in self._pool.populate(now):
            self._sockets.watch(child)
        if self._pool.template.is_loading:
            self._sockets.watch_template(self._pool.template)

    # Taking in what came

    def _take_report(self, now: float) -> None:
        if (error := self._database.take_lost()) is not None:
            self._coordinator.outage.begin(error, now)
        # A request answers what was heard before its report.
        if heard := self._state.take_heard():
            self._coordinator.timetable.hear(heard, now)
        is_idle = not self._dispatcher.held
        jobs = self._coordinator.take_in(now)
        if jobs is None:
            return
        self._dispatcher.add(jobs)
        if is_idle:
            # Before all else: nothing runs that the rest of the turn could be about.
            self._dispatcher.dispatch(now)
        if any(job.ping_seconds is not None or job.lease_seconds is not None for job in jobs):
            self._heartbeat.hurry()

    # Acting on what is due

    def _act(self, now: float) -> None:
        self._populate(now)
        self._stopper.enforce(now)
        self.summary.step(now)
        self._pool.relax(now)
        self._dispatcher.rebalance(now)
        self._dispatcher.dispatch(now)
        self._recorder.send(now)
        if self._coordinator.is_due(now):
            self._coordinator.send(now)
        if self._state.is_stopping:
            self._shutdown.cancel_overdue(now)

    @property
    def _is_asking(self) -> bool:
        """Whether a request to the database is under way."""
        return self._coordinator.is_waiting or self._recorder.is_busy

    @property
    def _is_done(self) -> bool:
        coordinator = self._coordinator
        if self._is_asking:
            return False
        if self._state.is_stopping:
            has_waited = coordinator.outage.is_on and self._shutdown.has_waited(time.monotonic())
            return coordinator.is_settled or has_waited
        return self._state.options.drain and (coordinator.is_drained or self.is_hopeless)

    @property
    def is_hopeless(self) -> bool:
        """Whether it must drain, but no child starts that could."""
        return self._state.options.drain and self._pool.is_broken and self._coordinator.is_settled

    # Sleeping

    def _sleep(self) -> None:
        now = time.monotonic()
        pause = min(self._moments(now)) - now
        if self._is_asking and self._pool.has_plenty:
            # Messages of children meanwhile are handled together.
            self._wake_pipe.wait(min(pause, GATHER))
            pause = 0.0
        if (claim := self._coordinator.standing_claim(now)) is not None:
            self._database.leave(claim)
        ready = self._watch.wait(pause)
        # First of all: until here nothing has changed that the claim depends on.
        has_begun = self._database.take_back()
        for on_ready in ready:
            on_ready()
        if has_begun and not (self._dispatcher.held or self._database.has_report):
            self._wake_pipe.wait(GATHER)  # Nothing runs, so the report is next.
        self._sockets.watch_outgoing(self._pool.children)

    def _moments(self, now: float) -> Iterator[float]:
        """Yield the times at which something must be done if nothing happens before."""
        yield now + LONGEST_SLEEP
        if self._dispatcher.has_waiting:
            yield now + REBALANCE_INTERVAL
        for moment in (
            self._pool.respawn_at,
            self._shutdown.ends_at,
            self._shutdown.cancels_at,
            self._stopper.next_limit(),
            self._pool.next_deadline(now),
        ):
            if moment is not None:
                yield moment
        if not self._coordinator.is_waiting:
            yield self._coordinator.next_at(now)

    def _queues_to_claim(self, heard: set[str]) -> Sequence[str]:
        """Return the queues to claim from at once; none if this thread has something to do first.

        The database thread calls this, while this one sleeps. Signals and pings that ask something
        of the worker wake this one, which heeds them before it claims.
        """
        if self._wake_pipe.is_woken:
            return ()
        return self._coordinator.timetable.queues_to_claim(heard)


def _make_duties(state: WorkerState, tally: Tally, examiner: Examiner) -> Duties:
    """Import and create the duties: they need most of the engine, the first claim little of it."""
    from taskqueue.worker.duties import Duties

    # A drain serves only the times of schedules that came before it.
    until = state.registered.started_at if state.options.drain else None
    worker_id = state.registered.id
    return Duties(
        state.settings,
        worker_id=worker_id,
        tally=tally,
        schedules_until=until,
        timed_seconds=TIMED_SECONDS,
        more=examiner.duties(),
    )
