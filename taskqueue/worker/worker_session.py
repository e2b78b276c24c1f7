"""The worker's database session, which carries out the parts of one request."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial

from taskqueue.core.outcomes import Recorded
from taskqueue.engine import workers
from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Claimed, Held
from taskqueue.engine.sessions import set_wanted_events
from taskqueue.engine.tally import Tally
from taskqueue.worker.claims import Claims
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.limited_exchange import claim_by_rank, claim_limited
from taskqueue.worker.own_connection import OwnConnection
from taskqueue.worker.recording import Batch, record_and_claim
from taskqueue.worker.state import WorkerState, this_host
from taskqueue.worker.stopped_steps import StoppedSteps
from taskqueue.worker.workflows import StepEnds, ended_steps

logger = logging.getLogger("taskqueue.worker")

# Seconds for which a request goes on claiming while everything that it finds is cancelled.
STOPPED_TURN = 0.2


class WorkerSession(OwnConnection):
    """The connection on which the worker records, claims and, if possible, listens."""

    def __init__(
        self, state: WorkerState, *, heard: Callable[[str], None] | None, tally: Tally
    ) -> None:
        super().__init__(state, heard=heard)
        options, settings = state.options, state.settings
        self._batch = Batch(EndPolicy.of(settings), tally)
        self._stopped_steps = StoppedSteps(self._batch.policy, tally)
        self._worker_name = options.name
        self._claims = Claims(
            options.queues,
            worker_name=options.name,
            slots=state.concurrency,
            lease_duration=settings.LEASE_DURATION,
            host=this_host(),
            tags=options.tags,
        )

    def carry_out(self, exchange: Exchange) -> None:
        """Carry out a request; the exchange shows how far it got, even if this raises."""
        self.open()
        if self._state.wanted_events is not None:
            set_wanted_events(self.connection, self._state.wanted_events)
        connection, unknown = self.connection, exchange.unknown
        self._claims.begin(exchange.room, slots=self._state.concurrency)
        if exchange.held is not None:
            exchange.unknown_leases = workers.unknown_leases(
                connection,
                worker=self._worker_name,
                known=exchange.held,
                since=self._registered.started_at,
            )
        if exchange.unsure:
            held = [Held(lease_id, self._lease_seconds, None) for lease_id in exchange.unsure]
            with transaction(connection):
                renewal = dialect_for(connection).renew(connection, held)
            exchange.ended, exchange.running = renewal.ended, renewal.renewed
        exchange.claimed_at = time.monotonic()
        if exchange.announced:
            exchange.claimed = self._claims.claim_announced(
                connection, exchange.want, unknown, exchange.announced
            )
        elif exchange.want and self._claims.limited.is_next(exchange.outcomes):
            claim_by_rank(self.connection, self._claims, exchange, self._batch)
        elif exchange.writes:
            exchange.recorded, exchange.claimed = record_and_claim(
                self.connection, exchange, partial(self._claim, exchange), self._batch
            )
        elif exchange.want:
            exchange.claimed = self._claims.look_and_claim(connection, exchange.want, unknown)
        exchange.is_recorded = True
        if self._claims.limited.has_news:
            claim_limited(self.connection, self._claims, exchange)
        left = exchange.want - len(exchange.claimed)
        if exchange.announced:
            return
        if left > 0 and exchange.may_sleep:
            # Also after many full claims: this one may be the last before it sleeps.
            if self._declare_idle(True):
                # Tasks committed before the declaration were not announced: look once more.
                exchange.claimed += self._claims.look_and_claim(connection, left, unknown)
                claim_limited(self.connection, self._claims, exchange)
        elif exchange.is_busy:
            self._declare_idle(False)
        exchange.limited_at = self._claims.limited.take_opens_at()
        if self._claims.limited.number:
            exchange.limited_seconds = time.monotonic() - exchange.claimed_at
            self._claims.remember_queues(connection)

    def advance(self, step_ends: StepEnds, exchange: Exchange) -> None:
        """Advance workflows after the ends that a request has recorded.

        This wakes other workers. This worker claims the tasks that it has released without being
        notified, but does receive requests to stop its own tasks.
        """
        with nullcontext() if self.listener is None else self.listener.leaving_out_own_work():
            step_ends.take(self.connection, exchange)

    def claim_released(self, exchange: Exchange) -> None:
        """Claim tasks that workflows have released since the claim, if nothing else waits.

        So the next step of a chain need not wait for another request.
        """
        left = exchange.want - len(exchange.claimed)
        has_other = exchange.claimed or exchange.claimed_ahead
        may_have = exchange.has_released or exchange.claims_last
        if may_have and left > 0 and not has_other:
            exchange.claimed += self._claims.claim_released(
                self.connection, left, exchange.unknown, exchange.released_queues
            )
            exchange.has_released = False

    def leave_stopped(self, exchange: Exchange) -> None:
        """Cancel claimed tasks of stopping workflows, and claim other tasks."""
        until = time.monotonic() + STOPPED_TURN
        while self._stopped_steps.cancel(self.connection, exchange):
            if time.monotonic() >= until:
                exchange.is_stopped_left = True
                break
            left = exchange.want - len(exchange.claimed)
            exchange.claimed += self._claims.look_and_claim(self.connection, left, exchange.unknown)

    def _claim(self, exchange: Exchange, recorded: Mapping[int, Recorded]) -> list[Claimed]:
        """Claim in the transaction that has recorded.

        If a step will be advanced and nothing else is known to wait, one claim suffices: that of
        the tasks that its workflow releases.
        """
        has_ahead = exchange.claimed_ahead or not exchange.has_looked
        exchange.claims_last = not has_ahead and bool(ended_steps(recorded.values()))
        if exchange.claims_last:
            return []
        return self._claims.claim(self.connection, exchange.want, exchange.unknown)

    def _declare_idle(self, is_idle: bool) -> bool:
        """Record whether an enqueue has to wake this worker. Return whether that is a change."""
        if self.listener is None or self._state.is_idle == is_idle:
            return False
        workers.set_idle(self.connection, worker_id=self._registered.id, is_idle=is_idle)
        self._state.is_idle = is_idle
        return True
