"""A request of a worker that claims under limits: what ends gives its places to what follows."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Recorded
from taskqueue.engine.rows import Claimed
from taskqueue.worker.claims import Claims
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.limits import NO_LIMITS
from taskqueue.worker.recording import Batch, record_and_claim


def claim_by_rank(
    connection: BaseDatabaseWrapper, claims: Claims, exchange: Exchange, batch: Batch
) -> None:
    """Record, and claim where the last look saw partitions: none waits for ordinary tasks."""
    # Slots of the worker that only some tasks may have are for a claim to give.
    want = exchange.want if exchange.room is NO_LIMITS else 0
    passing = claims.limited.passing(connection, exchange.outcomes, want)

    def claim(recorded: Mapping[int, Recorded]) -> list[Claimed]:
        """Claim in the transaction that has recorded: what takes places over, and others."""
        claimed: list[Claimed] = []
        if passing:
            claimed, has_more = claims.limited.pass_on(
                connection,
                passing,
                recorded,
                exchange.unknown,
                want=exchange.want,
                free=exchange.free,
            )
            if not has_more:
                return claimed
        return claimed + claims.claim_limited(
            connection,
            exchange.want - len(claimed),
            exchange.unknown,
            free=exchange.free - len(claimed),
            is_first=True,
            is_within=True,
        )

    exchange.recorded, exchange.claimed = record_and_claim(
        connection, exchange, claim, batch, passing=passing
    )
    last = claims.limited.last
    exchange.is_limited_left = last.is_left
    if claims.limited.is_alone:
        return
    if last.needs_another:
        # Also where this worker wants nothing more: others would wait behind what it takes.
        from taskqueue.engine.limits.claiming import make

        make(connection, last)
        claim_limited(connection, claims, exchange, is_first=True)
    left = exchange.want - len(exchange.claimed)
    if not last.has_others:
        claims.look_for_lanes(connection)
    elif len(exchange.claimed) < exchange.free or claims.is_look_due:
        exchange.claimed += claims.look_and_claim(connection, left, exchange.unknown)


def claim_limited(
    connection: BaseDatabaseWrapper, claims: Claims, exchange: Exchange, *, is_first: bool = False
) -> None:
    """Claim tasks of partitions, as far as the last look saw any."""
    exchange.claimed += claims.claim_limited(
        connection,
        exchange.want - len(exchange.claimed),
        exchange.unknown,
        free=exchange.free - len(exchange.claimed),
        is_first=is_first,
    )
    exchange.is_limited_left = claims.limited.last.is_left
