"""When a worker claims next, and when it serves its duties."""

from __future__ import annotations

import math
import random

from taskqueue.engine.notify import ANYWHERE, PLACES
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.limits import NO_LIMITS, Room
from taskqueue.worker.outage import Outage
from taskqueue.worker.recorder import LONG_LINGER

LOOK_AFTER = 0.005  # Seconds from a claim of announced tasks to one of all queues.
DUTIES_AFTER = 1.0  # Seconds after which the duties look at announced tasks, for their deadlines.
RELEASED_LATER = 0.05  # Seconds after which the duties look at tasks that workflows have released.
FIRST_DUTIES = 1.0  # Seconds for which the first duties wait for a child and its first tasks.
# The most seconds, chosen at random, for which they also wait while a worker claims under limits:
# they take a while, in which others cannot use the places that the worker holds.
LATER_DUTIES = 3.0
# Seconds after which other sessions have released locked partitions; longer if they have not.
LIMITED_LATER, LIMITED_LATEST = 0.01, 0.05


class Timetable:
    """The times of the next claim and the next duties, based on notifications and requests.

    Only the coordinator uses it, in the main thread.
    """

    def __init__(self, dispatcher: Dispatcher, database: DatabaseThread, outage: Outage) -> None:
        self._state = dispatcher.state
        self._options = dispatcher.state.options
        self._dispatcher = dispatcher
        self._pool = dispatcher.pool
        self._database = database
        self._outage = outage
        self._duties_at = 0.0
        self._alone_until = 0.0  # Until then the duties wait for a child.
        self._limited_until = 0.0  # And until then while the worker claims under limits.
        self.are_duties_next = False
        self.may_claim = True
        self.announced: set[str] = set()  # The queues announced since a claim left nothing behind.
        self.look_at = 0.0  # When the next claim of all queues may begin.
        self.is_dry = False  # Whether the last claim found nothing.
        self.is_promoted = False  # Whether the duties ran after the last outcomes.
        self.full_claims = 0  # How many claims in a row got all that was wanted.
        # What the last claim was allowed to take of limited queues and definitions, less what it
        # took.
        self.limited: Room | None = None
        self._limited_later = LIMITED_LATER
        self.limited_at = math.inf  # When the next token comes for waiting tasks.
        self.fold_at = math.inf  # When a request must count ends of steps that wait for it.
        # Seconds for which a first outcome waits for others after a claim under limits.
        self._linger = 0.0
        self._limited_claim_at = -math.inf

    # What was heard

    def begin(self, now: float) -> None:
        """Let the first claim precede the first duties."""
        self._alone_until = now + FIRST_DUTIES
        self._limited_until = self._alone_until + random.uniform(0.0, LATER_DUTIES)  # noqa: S311

    def hear(self, queues: set[str], now: float) -> None:
        """Record that tasks were enqueued in these queues, or something happened `ANYWHERE`."""
        if PLACES in queues:
            # With all slots busy it claims soon anyway.
            self.may_claim = self.may_claim or self._dispatcher.free > 0
            if not (queues := queues - {PLACES}):
                return
        names = self._state.queues.serving(queues)
        if ANYWHERE in queues or self._state.queues.is_outranked(names):
            self.look_again()
        else:
            self.announced.update(names)
            self.serve_duties_by(now + DUTIES_AFTER)

    def queues_to_claim(self, heard: set[str]) -> list[str]:
        """Return the queues to claim from at once; none if the claim must look at others too.

        Unlike everything else here, the database thread calls this, while the main thread sleeps.
        """
        names = self._state.queues.serving(heard)
        is_other = ANYWHERE in heard or PLACES in heard
        return [] if is_other or self._state.queues.is_outranked(names) else names

    def look_again(self) -> None:
        """Claim again, because there may be new tasks."""
        self.may_claim = True
        if self.full_claims == 0:
            # It may be due later, so the duties find out when.
            self.serve_duties_by(0.0)

    # The duties

    def serve_duties_by(self, moment: float) -> None:
        """Serve the duties at that moment, if not before."""
        self._duties_at = min(self._duties_at, moment)

    @property
    def duties_from(self) -> float:
        """When the duties are served: first not before a child starts, nor amid its first tasks."""
        if self._linger:
            return max(self._duties_at, self._limited_until)
        if self.full_claims or self._dispatcher.held or not self._pool.ready:
            return max(self._duties_at, self._alone_until)
        return self._duties_at

    def plan_duties(self, report: Exchange, now: float) -> None:
        """Plan the next duties by the result of a request, and by when they were wanted."""
        drains = self._options.drain
        if report.writes:
            self.is_promoted = False
        if report.has_ready is not None:
            self.is_promoted = not (report.is_overtaken or report.are_duties_cut)
            self.may_claim = self.may_claim or report.has_ready
            self.is_dry = not report.has_ready or (self.is_dry and not drains)
        elif drains and self.is_dry and not self.is_promoted and report.duties_at is None:
            self.serve_duties_by(now)
        if self.is_dry and not self._outage.is_on:
            # The duties look for ready tasks anyway, so they do the polling.
            pause = self._options.poll_interval
            self.serve_duties_by(now + (self._database.poll_interval if pause is None else pause))

    def plan_after_records(self, report: Exchange, now: float) -> None:
        """Plan what follows recorded ends and advanced workflows."""
        if report.is_recorded:
            self.serve_duties_by(report.step_ends_at)
            if report.fold_at is not None:
                # The earliest: the other thread may have reported later ends meanwhile.
                self.fold_at = min(self.fold_at, report.fold_at)
            if report.advance_seconds is not None and self.full_claims == 0:
                # Released tasks may be due later, so the duties find out when.
                self.serve_duties_by(now + RELEASED_LATER)
        self.may_claim = self.may_claim or report.has_released or not report.is_recorded

    def look_after_ends(self, look_at: float, now: float) -> None:
        """Record that bodies have recorded their ends themselves, and when the duties must look.

        Duties under way may not have seen these ends. A drain looks in any case, because nothing
        shows which tasks they released.
        """
        self.is_promoted = False
        look_at = now if self._options.drain else look_at
        if look_at <= now:
            self._database.overtake()
        self.serve_duties_by(look_at)

    def duties_served(self, report: Exchange) -> None:
        """Record when the duties that were served want to be served next."""
        if report.duties_at is not None:
            self._duties_at = 0.0 if report.is_overtaken else report.duties_at

    # Claims

    def room(self) -> Room:
        """Return how many tasks of limited queues and definitions the next claim may take."""
        if not self._state.limits:
            self.limited = None
            return NO_LIMITS
        room = self._dispatcher.room()
        self.limited = Room(room.queues, room.definitions)
        return room

    @property
    def rests_until(self) -> float:
        """Until when ended attempts wait for others, after a claim under limits."""
        return self._limited_claim_at + self._linger

    def look_for_room(self, now: float) -> None:
        """Claim again if a body has ended that filled a limit, or a token has come."""
        if self._has_room_again() or now >= self.limited_at:
            self.may_claim, self.limited_at = True, math.inf

    def _has_room_again(self) -> bool:
        """Return whether a body has ended whose limit may have kept the last claim from more."""
        last = self.limited
        if last is None or self._database.under_way is not None:
            return False
        return self._dispatcher.room().reopens(last)

    def plan_claims(self, report: Exchange, now: float) -> None:
        """Plan the next claim by the result of the last one."""
        want, count = report.want, len(report.claimed)
        if want and self.limited is not None:
            self.limited.take(report.claimed)
        if report.announced:
            # Unannounced tasks are next; if others were faster, there may be no more.
            self.may_claim, self.is_dry = True, False
            self.serve_duties_by(now + DUTIES_AFTER)
            self.look_at = now + LOOK_AFTER if count else now
            if not count:
                self.look_again()
        elif want:
            is_full = count >= want
            self.is_dry = not is_full and not count
            self.full_claims = self.full_claims + 1 if is_full else 0
            self.may_claim = self.may_claim or is_full
        if report.is_stopped_left:
            self.may_claim, self.is_dry = True, False
        if want or report.writes:
            # Such claims cost much compared to their tasks: the slower they are, the fewer are
            # made.
            self._linger = min(LONG_LINGER, report.limited_seconds)
            self._limited_claim_at = now if report.limited_seconds else -math.inf
        # Tasks that later claims do not meet still wait for it.
        self.limited_at = min(self.limited_at, report.limited_at)
        if report.is_limited_left:
            self.may_claim, self.is_dry = True, False
            later = LIMITED_LATER if count else self._limited_later
            self.look_at = max(self.look_at, now + later)
            self._limited_later = min(LIMITED_LATEST, 2 * later)
