"""Record a batch of outcomes, and claim the next tasks in the same transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Recorded
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import (
    RecordAtOnce,
    record,
    record_at_once,
    record_each,
    write_logs,
    write_notes,
)
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Claimed
from taskqueue.engine.tally import Tally
from taskqueue.engine.transient_errors import is_of_session
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.leases import aged_lines
from taskqueue.worker.outcomes import all_aged

logger = logging.getLogger("taskqueue.worker")

Claim = Callable[[Mapping[int, Recorded]], list[Claimed]]


@dataclass(frozen=True)
class Batch:
    """How the outcomes of a session are recorded."""

    policy: EndPolicy
    tally: Tally


def record_and_claim(
    connection: BaseDatabaseWrapper,
    exchange: Exchange,
    claim: Claim,
    batch: Batch,
    *,
    passing: Collection[int] = (),
) -> tuple[dict[int, Recorded], list[Claimed]]:
    """Record a batch and claim the next tasks in one transaction.

    The claim passes on the places of the leases `passing`. Raises the database's error if the
    session is in trouble; everything may then be sent again, because the fence refuses what was
    already recorded.
    """
    policy, tally, now = batch.policy, batch.tally, time.monotonic()
    lines = aged_lines(exchange.lines, now)
    outcomes = all_aged(exchange.outcomes, now)
    try:
        with tally.guard(), transaction(connection):
            write_logs(connection, lines)
            write_notes(connection, exchange.notes)
            recorded = record(connection, outcomes, policy=policy, tally=tally, passing=passing)
            return recorded, claim(recorded)
    except DatabaseError as error:
        if is_of_session(error):
            raise
        logger.warning("Batch refused, looking for the reason error=%s", one_line(error))
    try:
        with transaction(connection):
            write_logs(connection, lines)
            write_notes(connection, exchange.notes)
    except DatabaseError as error:
        if is_of_session(error):
            raise
        logger.error("Log lines refused, and dropped error=%s", one_line(error))
    recorded = record_each(connection, outcomes, policy=policy, tally=tally)
    with transaction(connection):
        return recorded, claim(recorded)


def record_by_statement(
    exchange: Exchange, succeed: RecordAtOnce, batch: Batch
) -> dict[int, Recorded] | None:
    """Record a batch of successes by one statement.

    If that is impossible, write nothing, return None.
    """
    outcomes = all_aged(exchange.outcomes, time.monotonic())
    return record_at_once(outcomes, succeed, policy=batch.policy, tally=batch.tally)
