"""Decide when to send a request to the database thread, and handle its report."""

from __future__ import annotations

import math
from collections.abc import Iterator

from taskqueue.worker import frames
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.jobs import Job
from taskqueue.worker.leases import Leases
from taskqueue.worker.outage import Outage
from taskqueue.worker.reconciliation import Reconciliation
from taskqueue.worker.recorder import Recorder
from taskqueue.worker.timetable import Timetable

EARLY_OUTCOMES = 48  # With this many, a request is sent before the last report is entered.
FORGET_UNKNOWN = 3  # For how many `PARK_DELAY`s a worker leaves out a name that it found unknown.
BUSY_CLAIMS = 50  # After this many full claims in a row, enqueues need not wake this worker.
UNSURE_PAUSE = 0.2  # Seconds between two checks whether a COMMIT without an answer took effect.
NOTE_INTERVAL, LONGEST_SLEEP = 0.25, 5.0


class Coordinator:
    """Sends one request at a time to the database thread, and acts on its report.

    While the recorder records a batch, requests write nothing, and further outcomes wait for it.
    The timetable says when it claims and serves duties. Only the main thread uses it.
    """

    def __init__(
        self, dispatcher: Dispatcher, leases: Leases, database: DatabaseThread, recorder: Recorder
    ) -> None:
        self._state = state = dispatcher.state
        self._unknown_limit = FORGET_UNKNOWN * state.settings.PARK_DELAY.total_seconds()
        self._dispatcher = dispatcher
        self._pool, self._pending = dispatcher.pool, dispatcher.pending
        self._leases = leases
        self._database = database
        self._recorder = recorder
        self.outage = Outage()
        self.timetable = Timetable(dispatcher, database, self.outage)
        self._reconciliation = Reconciliation(self._pending, leases)
        self._note_at = self._sent_at = 0.0

    # State

    @property
    def is_waiting(self) -> bool:
        """Whether a request is under way."""
        return self._database.under_way is not None

    @property
    def has_work(self) -> bool:
        """Whether anything runs, or is left to write."""
        is_unwritten = self._pending.outcomes or self._pending.unsure or self._recorder.is_busy
        return bool(self._dispatcher.held or is_unwritten)

    @property
    def is_settled(self) -> bool:
        """Whether nothing runs, and nothing is left to write."""
        return not (self.has_work or self.outage.is_on)

    @property
    def is_drained(self) -> bool:
        """Whether there is nothing to do now."""
        is_ready = bool(self._pool.ready) and self._pool.has_declared
        is_ready = is_ready and not self._pending.unreached.names()
        return self.is_settled and self.timetable.is_dry and self.timetable.is_promoted and is_ready

    def is_reported(self, lease_id: int) -> bool:
        """Whether the outcome of a lease is being recorded, so that its end is no surprise."""
        sent = self._database.outcomes + self._recorder.outcomes
        return lease_id in self._pending.unsure or any(
            outcome.lease_id == lease_id for outcome in self._pending.outcomes + sent
        )

    # News

    def take_in(self, now: float) -> list[Job] | None:
        """Enter the report, and the successes that bodies have recorded. Return the claimed jobs.

        Return None if there is no report.
        """
        if (batch := self._recorder.report(now)) is not None:
            self._database.overtake()
            self._enter_records(batch, now)
            self.timetable.plan_duties(batch, now)
            self.timetable.may_claim = True  # An end may have made other tasks ready.
        self.timetable.look_for_room(now)
        if self._pending.unreached.takes_turn(now):
            self.timetable.may_claim, self.timetable.is_dry = True, False
        jobs: list[Job] | None = None
        if (report := self._database.report()) is not None:
            self._recorder.send(now)
            if self._may_send_early(report, now):
                # The database goes on working while its answer is entered here.
                self.send(now, arriving=len(report.claimed))
            jobs = self._enter(report, now)
        if self._pending.recorded:
            look_at = self._leases.settle_recorded(self._pending.recorded, now)
            self.timetable.look_after_ends(look_at, now)
        return jobs

    def _may_send_early(self, report: Exchange, now: float) -> bool:
        """Return whether the next request has enough to do, and does not depend on this report."""
        timetable = self.timetable
        if not report.is_plain or self.outage.is_on or self._reconciliation.is_needed:
            return False
        if timetable.limited:
            return False
        if self._recorder.is_busy:
            count = len(report.claimed)
            timetable.may_claim = timetable.may_claim or count == report.want
            wanted = self._recorder.wanted(now) - count
            return timetable.may_claim and self._recorder.is_batch(wanted, arriving=count)
        return len(self._pending.outcomes) >= EARLY_OUTCOMES

    # Sending

    def begin(self, now: float) -> None:
        """Connect while the children start. Their first claim precedes the first duties."""
        self.timetable.begin(now)
        self._database.send(Exchange(looks_ahead=True))

    def is_due(self, now: float) -> bool:
        """Return whether there is a reason to send a request."""
        return not self.is_waiting and now >= self.next_at(now)

    def next_at(self, now: float) -> float:
        """Return when a request is due if nothing happens before."""
        pending, timetable = self._pending, self.timetable
        if self.outage.is_on:
            return self.outage.retry_at
        are_duties_due = timetable.are_duties_next and now >= self._duties_from
        if self._reconciliation.is_needed or are_duties_due:
            return now
        is_to_look = timetable.may_claim or timetable.announced
        wanted = self._recorder.wanted(now) if is_to_look else 0
        if self._recorder.is_busy:
            if not (wanted and timetable.may_claim):
                return min(self._moments(now))
            return now if self._recorder.is_batch(wanted) else self._recorder.late_at
        if pending.outcomes:
            # After a claim under limits, even ended attempts wait for running ones.
            rests = timetable.rests_until if self._pool.held else now
            if len(pending.outcomes) >= self._pool.held or (timetable.announced and wanted):
                return max(now, rests)
            return max(pending.outcomes[0].ended + self._recorder.linger(now), rests)
        if wanted:
            return max(now, timetable.look_at) if timetable.may_claim else now
        return min(self._moments(now))

    @property
    def _duties_from(self) -> float:
        """Return when the duties are served.

        A drain that found nothing more to claim serves them after the batch under way: otherwise it
        would have to serve them again, and tasks that follow from the batch can be claimed first.
        """
        is_last = self._state.options.drain and self.timetable.is_dry
        return math.inf if is_last and self._recorder.is_busy else self.timetable.duties_from

    def _moments(self, now: float) -> Iterator[float]:
        yield now + LONGEST_SLEEP
        yield self.timetable.limited_at
        yield self.timetable.fold_at
        yield self._pending.unreached.retry_at
        if self._pending.unsure:
            yield self._sent_at + UNSURE_PAUSE
        if not self._state.is_stopping:
            yield self._duties_from
        if not self._recorder.is_busy:
            yield max(self._note_at, self._pending.next_note_at(self._pool.running()))

    def send(self, now: float, *, arriving: int = 0) -> None:
        """Send a request for the next work; `arriving` claimed tasks are not here yet.

        A claim of announced tasks goes first. The duties have separate requests, in turns with
        others: claimed tasks are handed out before the duties are served.
        """
        are_due = now >= self._duties_from and not self._state.is_stopping
        request = self._announced_claim(now)
        if request is None and self.timetable.are_duties_next and are_due:
            request = Exchange(with_duties=True)
        if request is None:
            request = self._all_else(now, arriving)
            request.with_duties = are_due and request.is_empty
        self.timetable.are_duties_next = are_due and not request.with_duties
        if now >= self.timetable.fold_at:
            # This request counts them, and returns when to count next.
            self.timetable.fold_at = math.inf
        self._database.send(request)
        self._sent_at = now

    def _announced_claim(self, now: float) -> Exchange | None:
        """Return a claim of announced tasks, if the last claim of all queues took everything."""
        if not self.timetable.announced or (claim := self._claim_alone(now)) is None:
            return None
        queues, self.timetable.announced = self.timetable.announced, set()
        claim.announced = self._state.queues.serving(queues)
        return claim

    def standing_claim(self, now: float) -> Exchange | None:
        """Return a claim of tasks that may be announced while this thread sleeps."""
        if self.is_waiting or self._recorder.is_busy or self._state.limits:
            return None
        return self._claim_alone(now)

    def _claim_alone(self, now: float) -> Exchange | None:
        """Return a claim, if nothing else goes before or with it."""
        has_more = self.timetable.may_claim or self._reconciliation.is_needed or self.outage.is_on
        has_more = has_more or bool(self._pending.outcomes or self._pending.unsure)
        want = 0 if has_more else self._recorder.wanted(now)
        if not want:
            return None
        unknown = self._pending.unknown_names(now, limit=self._unknown_limit)
        return Exchange(want=want, unknown=unknown, room=self.timetable.room())

    def _all_else(self, now: float, arriving: int) -> Exchange:
        """Return a request with everything that must be written, and a claim of all queues."""
        pending, timetable = self._pending, self.timetable
        want = self._recorder.wanted(now) if timetable.may_claim or pending.outcomes else 0
        want = max(0, want - arriving)
        has_looked = not (timetable.may_claim or timetable.announced)
        if want:
            # Notifications from here on may be newer than what the claim sees.
            timetable.may_claim = False
            timetable.announced.clear()
        request = Exchange(
            want=want,
            free=max(0, self._dispatcher.free - arriving),
            unknown=pending.unknown_names(now, limit=self._unknown_limit),
            room=timetable.room(),
            unsure=list(pending.unsure),
            held=self._reconciliation.held,
            is_busy=timetable.full_claims >= BUSY_CLAIMS or self._state.is_quiet,
            may_sleep=self._state.takes_tasks,
            has_looked=has_looked,
        )
        if not self._recorder.is_to_write(now, want):
            request.outcomes, request.lines = pending.take()
            request.notes = pending.take_notes(self._pool.running(), now)
            self._note_at = now + NOTE_INTERVAL
        request.claimed_ahead = self._pool.ahead
        return request

    # Entering what came of it

    def _enter(self, report: Exchange, now: float) -> list[Job]:
        """Enter the report of a request, and return the claimed jobs."""
        self.timetable.duties_served(report)
        self._reconciliation.enter(report, now)
        if report.ended:
            self.timetable.look_after_ends(now, now)
        self._enter_records(report, now)
        jobs = self._claimed(report, now) if report.is_recorded else []
        if report.error is not None:
            self.outage.begin(report.error, now)
        elif self.outage.end():
            self._reconciliation.is_needed = True
            self.timetable.look_again()  # Notifications were lost meanwhile.
            for child in self._pool.children:
                child.send((frames.SUSPECT,))  # It checks its connections before their next use.
        self.timetable.plan_duties(report, now)
        return jobs

    def _claimed(self, report: Exchange, now: float) -> list[Job]:
        if report.want:
            self._state.meter.claimed_batch(len(report.claimed))
        self.timetable.plan_claims(report, now)
        return self._leases.take(report.claimed, report.claimed_at)

    def _enter_records(self, report: Exchange, now: float) -> None:
        if report.is_recorded:
            if report.advance_seconds is not None:
                self._state.meter.advances.add(report.advance_seconds)
            look_at = self._leases.settle(report.outcomes, report.recorded, now)
            self.timetable.serve_duties_by(look_at)
        else:
            # The fence knows which were recorded, and refuses them the second time.
            self._pending.put_back(report.outcomes, report.lines, report.notes)
        self.timetable.plan_after_records(report, now)
