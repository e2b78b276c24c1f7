"""The coordinator: when to send a request to the database, and what follows from its report."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.notify import ANYWHERE, PLACES
from taskqueue.worker import frames
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.endings import unconfirmed
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.jobs import Job
from taskqueue.worker.leases import Leases
from taskqueue.worker.limits import NO_LIMITS, Room
from taskqueue.worker.outage import Outage
from taskqueue.worker.recorder import LONG_LINGER, Recorder

EARLY_OUTCOMES = 48  # So many are sent before the last report is entered.
FORGET_UNKNOWN = 3  # How many `PARK_DELAY`s a worker leaves out a name that it found unknown.
LOOK_AFTER = 0.005  # Seconds from a claim of announced tasks to one of all queues.
DUTIES_AFTER = 1.0  # Seconds after which the duties look at what was announced and has a deadline.
# Seconds after which others have let go of partitions that they held; longer where they have not.
LIMITED_LATER, LIMITED_LATEST = 0.01, 0.05
RELEASED_LATER = 0.05  # Seconds after which the duties look at what workflows have released.
FIRST_DUTIES = 1.0  # Seconds for which the first duties wait for a child and its claim.
# Seconds, at most, for which they wait besides, by chance, while a worker claims under limits: they
# take a while, in which others have no use of the places that it holds.
LATER_DUTIES = 3.0
BUSY_CLAIMS = 50  # After that many full claims in a row, enqueues need not wake this worker.
UNSURE_PAUSE = 0.2  # Seconds between two looks at whether a COMMIT without an answer took effect.
NOTE_INTERVAL, LONGEST_SLEEP = 0.25, 5.0


class Coordinator:
    """Sends one request at a time to the database thread, and acts on its report.

    While the recorder has a batch under way, requests write nothing, and more outcomes wait for it.
    The coordinator alone decides when the duties are served. All of it belongs to the main thread.
    """

    def __init__(
        self, dispatcher: Dispatcher, leases: Leases, database: DatabaseThread, recorder: Recorder
    ) -> None:
        self._state = state = dispatcher.state
        self._options = state.options
        self._unknown_limit = FORGET_UNKNOWN * state.settings.PARK_DELAY.total_seconds()
        self._dispatcher = dispatcher
        self._pool, self._pending = dispatcher.pool, dispatcher.pending
        self._leases = leases
        self._database = database
        self._recorder = recorder
        self.outage = Outage()
        self._duties_at = 0.0
        self._alone_until = 0.0  # Until then the duties wait for a child.
        self._limited_until = 0.0  # And until then while it claims under limits.
        self._may_claim = True
        self._announced: set[str] = set()  # Queues, since a claim left nothing behind.
        self._look_at = 0.0  # When the next claim of all queues may begin.
        self._are_duties_next = False
        self._is_dry = False  # Whether the last claim found nothing.
        self._is_promoted = False  # Whether the duties came after the last outcomes.
        self._is_to_reconcile = False
        # What the last claim was allowed of limited queues and definitions, less what it took.
        self._limited: Room | None = None
        self._limited_later = LIMITED_LATER
        self._limited_at = math.inf  # When the next token comes for what waits for one.
        # Seconds for which a first outcome waits for others, after a claim under limits.
        self._linger = 0.0
        self._limited_claim_at = -math.inf
        self._full_claims = 0  # How many in a row gave all that was wanted.
        self._note_at = self._sent_at = 0.0

    # State

    @property
    def is_waiting(self) -> bool:
        """Whether a request is under way."""
        return self._database.under_way is not None

    @property
    def has_work(self) -> bool:
        """Whether something runs, or is left to write."""
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
        return self.is_settled and self._is_dry and self._is_promoted and is_ready

    def is_reported(self, lease_id: int) -> bool:
        """Whether the outcome of a lease is on its way, so that its end is no surprise."""
        sent = self._database.outcomes + self._recorder.outcomes
        return lease_id in self._pending.unsure or any(
            outcome.lease_id == lease_id for outcome in self._pending.outcomes + sent
        )

    # News

    def take_in(self, now: float) -> list[Job] | None:
        """Take in the report, and what bodies have recorded; the jobs claimed. None: no report."""
        if (batch := self._recorder.report(now)) is not None:
            self._database.overtake()
            self._enter_records(batch, now)
            self._plan_duties(batch, now)
            self._may_claim = True  # What has ended may have made others ready.
        if self._has_room_again() or now >= self._limited_at:
            self._may_claim, self._limited_at = True, math.inf
        jobs: list[Job] | None = None
        if (report := self._database.report()) is not None:
            self._recorder.send(now)
            if self._may_send_early(report, now):
                # The database works on while what it has answered is entered here.
                self.send(now, arriving=len(report.claimed))
            jobs = self._enter(report, now)
        if self._pending.recorded:
            self._ended_elsewhere(self._leases.settle_recorded(self._pending.recorded, now), now)
        return jobs

    def _may_send_early(self, report: Exchange, now: float) -> bool:
        """Whether the next request has enough to do, and does not depend on this report."""
        if not report.is_plain or self.outage.is_on or self._is_to_reconcile or self._limited:
            return False
        if self._recorder.is_busy:
            count = len(report.claimed)
            self._may_claim = self._may_claim or count == report.want
            wanted = self._recorder.wanted(now) - count
            return self._may_claim and self._recorder.is_batch(wanted, arriving=count)
        return len(self._pending.outcomes) >= EARLY_OUTCOMES

    def hear(self, queues: set[str], now: float) -> None:
        """Take in that tasks were enqueued in these queues, or something happened `ANYWHERE`."""
        if PLACES in queues:
            # With all slots busy it claims soon anyway.
            self._may_claim = self._may_claim or self._dispatcher.free > 0
            if not (queues := queues - {PLACES}):
                return
        names = self._state.queues.serving(queues)
        if ANYWHERE in queues or self._state.queues.is_outranked(names):
            self.look_again()
        else:
            self._announced.update(names)
            self._serve_duties_by(now + DUTIES_AFTER)

    def look_again(self) -> None:
        """Claim again: there may be something new."""
        self._may_claim = True
        if self._full_claims == 0:
            # It may be due later: the duties look when.
            self._serve_duties_by(0.0)

    def _serve_duties_by(self, moment: float) -> None:
        self._duties_at = min(self._duties_at, moment)

    # Sending

    def begin(self, now: float) -> None:
        """Connect while the children start; their first claim goes before the first duties."""
        self._alone_until = now + FIRST_DUTIES
        self._limited_until = self._alone_until + random.uniform(0.0, LATER_DUTIES)  # noqa: S311
        self._database.send(Exchange())

    def is_due(self, now: float) -> bool:
        """Whether there is a reason to send a request."""
        return not self.is_waiting and now >= self.next_at(now)

    def next_at(self, now: float) -> float:
        """When a request is due, if nothing happens before."""
        pending = self._pending
        if self.outage.is_on:
            return self.outage.retry_at
        if self._is_to_reconcile or (self._are_duties_next and now >= self._duties_from):
            return now
        wanted = self._recorder.wanted(now) if self._may_claim or self._announced else 0
        if self._recorder.is_busy:
            if not (wanted and self._may_claim):
                return min(self._moments(now))
            return now if self._recorder.is_batch(wanted) else self._recorder.late_at
        if pending.outcomes:
            # After a claim under limits also what has ended meanwhile waits for others that run.
            rests = self._limited_claim_at + self._linger if self._pool.held else now
            if len(pending.outcomes) >= self._pool.held or (self._announced and wanted):
                return max(now, rests)
            return max(pending.outcomes[0].ended + self._recorder.linger(now), rests)
        if wanted:
            return max(now, self._look_at) if self._may_claim else now
        return min(self._moments(now))

    def _moments(self, now: float) -> Iterator[float]:
        yield now + LONGEST_SLEEP
        yield self._limited_at
        if self._pending.unsure:
            yield self._sent_at + UNSURE_PAUSE
        if not self._state.is_stopping:
            yield self._duties_from
        if not self._recorder.is_busy:
            yield max(self._note_at, self._pending.next_note_at(self._pool.running()))

    @property
    def _duties_from(self) -> float:
        """When the duties are served: the first ones not before a child, nor amid first claims."""
        if self._linger:
            return max(self._duties_at, self._limited_until)
        if self._full_claims or not self._pool.ready:
            return max(self._duties_at, self._alone_until)
        return self._duties_at

    def send(self, now: float, *, arriving: int = 0) -> None:
        """Send a request for what is to be done next; so many claimed tasks are not here yet.

        A claim of announced tasks goes before all else. The duties have requests of their own, in
        turns with others: what was claimed is handed out before they are served.
        """
        are_due = now >= self._duties_from and not self._state.is_stopping
        request = self._announced_claim(now)
        if request is None and self._are_duties_next and are_due:
            request = Exchange(with_duties=True)
        if request is None:
            request = self._all_else(now, arriving)
            request.with_duties = are_due and request.is_empty
        self._are_duties_next = are_due and not request.with_duties
        self._database.send(request)
        self._sent_at = now

    def _announced_claim(self, now: float) -> Exchange | None:
        """A claim of announced tasks, where the last claim of all queues left nothing behind."""
        has_more = self._may_claim or self._is_to_reconcile or self.outage.is_on
        has_more = has_more or bool(self._pending.outcomes or self._pending.unsure)
        want = self._recorder.wanted(now) if self._announced and not has_more else 0
        if not want:
            return None
        queues, self._announced = self._announced, set()
        unknown = self._pending.unknown_names(now, limit=self._unknown_limit)
        return Exchange(
            announced=self._state.queues.serving(queues),
            want=want,
            unknown=unknown,
            room=self._room(),
        )

    def _all_else(self, now: float, arriving: int) -> Exchange:
        """All that there is to write, and a claim of all queues."""
        pending = self._pending
        want = self._recorder.wanted(now) if self._may_claim or pending.outcomes else 0
        want = max(0, want - arriving)
        has_looked = not (self._may_claim or self._announced)
        if want:
            # What is heard from here on may be newer than what the claim sees.
            self._may_claim = False
            self._announced.clear()
        request = Exchange(
            want=want,
            free=max(0, self._dispatcher.free - arriving),
            unknown=pending.unknown_names(now, limit=self._unknown_limit),
            room=self._room(),
            unsure=list(pending.unsure),
            held=list(self._leases.held) if self._is_to_reconcile else None,
            is_busy=self._full_claims >= BUSY_CLAIMS or self._state.is_quiet,
            may_sleep=self._state.takes_tasks,
            has_looked=has_looked,
        )
        if not self._recorder.is_to_write(now, want):
            request.outcomes, request.lines = pending.take()
            request.notes = pending.take_notes(self._pool.running(), now)
            self._note_at = now + NOTE_INTERVAL
        request.claimed_ahead = self._pool.ahead
        return request

    def _room(self) -> Room:
        """Return how many tasks of limited queues and definitions may be claimed."""
        if not self._state.limits:
            self._limited = None
            return NO_LIMITS
        room = self._dispatcher.room()
        self._limited = Room(room.queues, room.definitions)
        return room

    def _has_room_again(self) -> bool:
        """Whether a body has ended whose limit may have kept the last claim from more."""
        last = self._limited
        if last is None or self.is_waiting:
            return False
        return self._dispatcher.room().reopens(last)

    # Entering what came of it

    def _enter(self, report: Exchange, now: float) -> list[Job]:
        """Enter the report of a request, and give the jobs claimed."""
        if report.duties_at is not None:
            self._duties_at = 0.0 if report.is_overtaken else report.duties_at
        self._resolve(report, now)
        self._enter_records(report, now)
        jobs = self._claimed(report, now) if report.is_recorded else []
        if report.error is not None:
            self.outage.begin(report.error, now)
        elif self.outage.end():
            self._is_to_reconcile = True
            for child in self._pool.children:
                child.send((frames.SUSPECT,))  # It checks its connections before their next use.
        self._plan_duties(report, now)
        return jobs

    def _enter_records(self, report: Exchange, now: float) -> None:
        if report.is_recorded:
            self._serve_duties_by(report.step_ends_at)
            if report.advance_seconds is not None:
                self._state.meter.advances.add(report.advance_seconds)
                if self._full_claims == 0:
                    # What was released may be due later: the duties look when.
                    self._serve_duties_by(now + RELEASED_LATER)
            self._serve_duties_by(self._leases.settle(report.outcomes, report.recorded, now))
        else:
            # The fence knows what had been recorded, and refuses it the second time.
            self._pending.put_back(report.outcomes, report.lines, report.notes)
        self._may_claim = self._may_claim or report.has_released or not report.is_recorded

    def _resolve(self, report: Exchange, now: float) -> None:
        """Enter attempts whose COMMIT got no answer, and claims whose answer got lost."""
        pending = self._pending
        if report.held is not None and report.error is None:
            self._is_to_reconcile = False
        for lease_id in report.unknown_leases:
            pending.outcomes.append(Outcome(lease_id, OutcomeKind.UNSTARTED, now))
        for lease_id in report.ended:
            del pending.unsure[lease_id]
            self._leases.drop(lease_id)
        if report.ended:
            self._ended_elsewhere(now, now)
        for lease_id in report.running:
            pending.outcomes.append(unconfirmed(pending.unsure.pop(lease_id)))

    def _ended_elsewhere(self, look_at: float, now: float) -> None:
        """Take in that bodies have recorded their ends themselves, and when to look after them.

        Duties that are under way may not have seen these ends. A drain looks in any case: nobody
        has said what they released.
        """
        self._is_promoted = False
        look_at = now if self._options.drain else look_at
        if look_at <= now:
            self._database.overtake()
        self._serve_duties_by(look_at)

    def _claimed(self, report: Exchange, now: float) -> list[Job]:
        want, count = report.want, len(report.claimed)
        if want and self._limited is not None:
            self._limited.take(report.claimed)
        if want:
            self._state.meter.claimed_batch(count)
        if report.announced:
            # What came unannounced is next; where others were faster, it may be all there is.
            self._may_claim, self._is_dry = True, False
            self._look_at = now + LOOK_AFTER if count else now
            if not count:
                self.look_again()
        elif want:
            is_full = count >= want
            self._is_dry = not is_full and not count
            self._full_claims = self._full_claims + 1 if is_full else 0
            self._may_claim = self._may_claim or is_full
        if want or report.writes:
            # Such claims cost much beside their tasks: the slower they are, the fewer are made.
            self._linger = min(LONG_LINGER, report.limited_seconds)
            self._limited_claim_at = now if report.limited_seconds else -math.inf
        # What later claims do not meet still waits for it.
        self._limited_at = min(self._limited_at, report.limited_at)
        if report.is_limited_left:
            self._may_claim, self._is_dry = True, False
            later = LIMITED_LATER if count else self._limited_later
            self._look_at = max(self._look_at, now + later)
            self._limited_later = min(LIMITED_LATEST, 2 * later)
        return self._leases.take(report.claimed, report.claimed_at)

    def _plan_duties(self, report: Exchange, now: float) -> None:
        drains = self._options.drain
        if report.writes:
            self._is_promoted = False
        if report.has_ready is not None:
            self._is_promoted = not report.is_overtaken
            self._may_claim = self._may_claim or report.has_ready
            self._is_dry = not report.has_ready or (self._is_dry and not drains)
        elif drains and self._is_dry and not self._is_promoted:
            self._serve_duties_by(now)
        if self._is_dry and not self.outage.is_on:
            # The duties look for ready tasks anyway, so they do the polling.
            pause = self._options.poll_interval
            self._serve_duties_by(now + (self._database.poll_interval if pause is None else pause))
