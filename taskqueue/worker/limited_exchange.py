"""Record and claim under limits in one request, so that ended tasks pass their places on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome, Recorded
from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import transaction
from taskqueue.engine.rows import Claimed, RollupRow
from taskqueue.worker.claims import Claims
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.recording import Batch, record_and_claim, record_by_statement

if TYPE_CHECKING:
    from taskqueue.engine.limit_rows import PassingTerms
    from taskqueue.engine.postgresql.limit_pass import Passed


def claim_by_rank(
    connection: BaseDatabaseWrapper, claims: Claims, exchange: Exchange, batch: Batch
) -> None:
    """Record outcomes, and claim from partitions that the last look saw.

    None of the claimed tasks comes after a better ordinary task.
    """
    limited = claims.limited
    # If only some tasks may have the free slots, a claim must choose the tasks.
    want = 0 if exchange.room.has_bounds else exchange.want
    passing = limited.passing(connection, exchange.outcomes, want)
    terms = limited.passing_terms([*exchange.unknown, *exchange.room.full], want=want)

    def claim_others(claimed: list[Claimed]) -> list[Claimed]:
        """Claim further tasks, beside those that took over places, in the caller's transaction."""
        return claims.claim_limited(
            connection,
            exchange.want - len(claimed),
            exchange.unknown,
            free=exchange.free - len(claimed),
            is_first=True,
            is_within=True,
        )

    def claim(recorded: Mapping[int, Recorded]) -> list[Claimed]:
        """Claim in the transaction that has recorded."""
        claimed: list[Claimed] = []
        if passing:
            # Imported here, like all code that claims under limits.
            from taskqueue.engine.postgresql.limit_pass import pass_on

            ended = {
                lease_id: partition
                for lease_id, partition in passing.items()
                if lease_id in recorded and recorded[lease_id].lease_status == LeaseStatus.SUCCEEDED
            }
            passed = pass_on(connection, ended, terms)
            claimed, has_more = limited.take_passed(connection, passed, free=exchange.free)
            if not has_more:
                return claimed
        return claimed + claim_others(claimed)

    passed = None
    if passing and limited.is_alone and len(passing) == len(exchange.outcomes):
        # Most probably there is again nothing else to claim.
        passed = _record_and_pass(connection, exchange, passing, terms, batch)
    if passed is None:
        exchange.recorded, exchange.claimed = record_and_claim(
            connection, exchange, claim, batch, passing=passing
        )
    else:
        exchange.claimed, has_more = limited.take_passed(connection, passed, free=exchange.free)
        if has_more:
            with transaction(connection):
                exchange.claimed += claim_others(exchange.claimed)
    last = limited.last
    exchange.is_limited_left = last.is_left
    if limited.is_alone:
        return
    if last.needs_another:
        # Even if this worker wants nothing more: others would wait behind what it takes.
        from taskqueue.engine.limits.claiming import make

        make(connection, last)
        claim_limited(connection, claims, exchange, is_first=True)
    left = exchange.want - len(exchange.claimed)
    if not last.has_others:
        claims.look_for_lanes(connection)
    elif len(exchange.claimed) < exchange.free or claims.is_look_due:
        exchange.claimed += claims.look_and_claim(connection, left, exchange.unknown)


def _record_and_pass(
    connection: BaseDatabaseWrapper,
    exchange: Exchange,
    passing: Mapping[int, str],
    terms: PassingTerms,
    batch: Batch,
) -> Passed | None:
    """Record and pass places on by one statement. Return None if that is not possible."""
    from taskqueue.engine.postgresql.limit_pass_at_once import may_pass_at_once, record_and_pass

    if exchange.lines or exchange.notes or not may_pass_at_once(connection):
        return None
    passed: list[Passed] = []

    def succeed(
        outcomes: Sequence[Outcome], kept_for: timedelta | None, rollups: Sequence[RollupRow]
    ) -> None:
        passed.append(
            record_and_pass(connection, outcomes, kept_for, rollups, ended=passing, terms=terms)
        )

    exchange.recorded = record_by_statement(exchange, succeed, batch) or {}
    return passed[0] if passed else None


def claim_limited(
    connection: BaseDatabaseWrapper, claims: Claims, exchange: Exchange, *, is_first: bool = False
) -> None:
    """Claim tasks of partitions, if the last look saw any."""
    exchange.claimed += claims.claim_limited(
        connection,
        exchange.want - len(exchange.claimed),
        exchange.unknown,
        free=exchange.free - len(exchange.claimed),
        is_first=is_first,
    )
    exchange.is_limited_left = claims.limited.last.is_left
