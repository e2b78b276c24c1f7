"""Record the outcomes of attempts in batches, fenced by their leases."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import SUCCESS, Outcome, OutcomeKind, Recorded
from taskqueue.core.states import FINISHED, WAITING, LeaseStatus, TaskStatus
from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.ends import announce, count_for_statement
from taskqueue.engine.multi_worker import record_shared
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Ended, LogLine, Note, RollupRow
from taskqueue.engine.sessions import limit_idleness, take_write_lock
from taskqueue.engine.stays import keep_on_worker
from taskqueue.engine.tally import Tally
from taskqueue.engine.transient_errors import is_of_session

logger = logging.getLogger("taskqueue.engine")

REFUSED = "taskqueue.exceptions.InvalidArguments"
# Records successes, with how long they are kept, and writes rollups: all of it, or it raises.
RecordAtOnce = Callable[[Sequence[Outcome], timedelta | None, Sequence[RollupRow]], None]


def record(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    *,
    policy: EndPolicy,
    tally: Tally | None = None,
    passing: Collection[int] = (),
) -> dict[int, Recorded]:
    """Record outcomes of leases that still run. Return the records by lease.

    An attempt whose stop was seen cannot succeed: it ends as stopped. Leases that are missing in
    the result had already ended, and nothing was written for them. Tasks that end are announced.
    The caller guards the transaction for the tally; without a tally, the counts are written as new
    rows. For those of the leases `passing` that succeed, the caller passes the places on.
    """
    began = time.monotonic()
    dialect = dialect_for(connection)
    successes: list[Outcome] = []
    endings: list[Outcome] = []
    for outcome in outcomes:
        (successes if outcome.kind == "succeeded" else endings).append(outcome)
    recorded: dict[int, Recorded] = {}
    if successes:
        recorded = dialect.record_successes(connection, successes, policy.keep_succeeded, passing)
        if len(recorded) < len(successes):
            endings += [
                outcome._replace(kind=OutcomeKind.STOPPED, return_value=None)
                for outcome in successes
                if outcome.lease_id not in recorded
            ]
    if endings:
        recorded.update(dialect.record_endings(connection, endings, policy))
    shared: dict[int, Recorded] = {}
    shared_ends: list[Ended] = []
    if len(recorded) < len(outcomes):
        missed = [outcome for outcome in outcomes if outcome.lease_id not in recorded]
        shared, shared_ends = record_shared(connection, missed, policy=policy)
    if not (recorded or shared):
        return {}
    tally = tally or Tally()
    subjects = tally.subjects(connection, [*recorded, *shared])
    # Further reports of bodies of workflow tasks. By position, because this runs for each attempt.
    told = {outcome[0]: outcome for outcome in outcomes if outcome[-1] or outcome[-2] is not None}
    ends = []
    staying: list[int] = []
    for lease_id, (status, _, step_id) in recorded.items():
        if status in FINISHED:
            subject = subjects[lease_id]
            end = Ended(subject.task_id, subject.queue_name, subject.name, status, step_id)
            if lease_id in told and step_id is not None and status == TaskStatus.SUCCEEDED:
                outcome = told[lease_id]
                end = end._replace(updates=outcome.updates, has_fan=outcome.has_fan)
            ends.append(end)
        elif status in WAITING and subjects[lease_id].stays:
            staying.append(lease_id)
    if staying:
        # The task must not stay on a worker that does not know its definition.
        parked = {each.lease_id for each in endings if each.kind == OutcomeKind.PARKED}
        keep_on_worker(connection, set(staying) - parked)
    recorded.update(shared)
    tally.add_attempts(outcomes, recorded, subjects, now=began)
    announce(connection, ends + shared_ends, tally=tally)
    return recorded


def record_at_once(
    outcomes: Sequence[Outcome], succeed: RecordAtOnce, *, policy: EndPolicy, tally: Tally
) -> dict[int, Recorded] | None:
    """Record successes of tasks without workflows in one statement, which also counts them.

    Return None if not all of them can be recorded like this; then none is. Raises the database's
    error if the session is in trouble.
    """
    began = time.monotonic()
    subjects = tally.known_plain([outcome.lease_id for outcome in outcomes])
    if subjects is None:
        return None
    ends = [
        Ended(subject.task_id, subject.queue_name, subject.name, TaskStatus.SUCCEEDED)
        for subject in subjects.values()
    ]
    recorded = {outcome.lease_id: SUCCESS for outcome in outcomes}
    try:
        with tally.guard():
            tally.add_attempts(outcomes, recorded, subjects, now=began)
            rollups = count_for_statement(ends, tally=tally)
            succeed(outcomes, policy.keep_succeeded, rollups)
    except DatabaseError as error:
        if is_of_session(error):
            raise
        return None
    return recorded


def record_success(
    connection: BaseDatabaseWrapper,
    outcome: Outcome,
    *,
    policy: EndPolicy,
    tally: Tally | None = None,
) -> bool:
    """Record a success in the body's own transaction. Return whether the attempt has succeeded.

    If not, its lease had ended or its stop was seen, and the transaction must not commit.
    """
    # From here on the lease is locked. Before this, the body may have been idle in its transaction.
    limit_idleness(connection)
    take_write_lock(connection)
    recorded = record(connection, [outcome], policy=policy, tally=tally).get(outcome.lease_id)
    return recorded is not None and recorded.lease_status == LeaseStatus.SUCCEEDED


def record_each(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    *,
    policy: EndPolicy,
    tally: Tally,
) -> dict[int, Recorded]:
    """Record in separate transactions, so that an outcome the database refuses fails alone.

    The batch is halved until the refused outcome is alone, and that one is recorded as a failure.
    Raises the database's error if the session is in trouble: see `is_of_session`.
    """
    try:
        with tally.guard(), transaction(connection):
            return record(connection, outcomes, policy=policy, tally=tally)
    except DatabaseError as error:
        if is_of_session(error):
            raise
        if len(outcomes) == 1:
            return _record_refused(connection, outcomes[0], error, policy=policy, tally=tally)
    middle = len(outcomes) // 2
    recorded = record_each(connection, outcomes[:middle], policy=policy, tally=tally)
    return recorded | record_each(connection, outcomes[middle:], policy=policy, tally=tally)


def _record_refused(
    connection: BaseDatabaseWrapper,
    outcome: Outcome,
    error: DatabaseError,
    *,
    policy: EndPolicy,
    tally: Tally,
) -> dict[int, Recorded]:
    logger.error("Outcome refused by the database lease=%s", outcome.lease_id, exc_info=error)
    refused = Outcome(
        lease_id=outcome.lease_id,
        kind=OutcomeKind.FAILED,
        ended=outcome.ended,
        error_class=REFUSED,
        error_message="The database refused the outcome of this attempt: "
        + ascii(str(error))[1:2000],
        retryable=False,
        started=outcome.started,
    )
    with tally.guard(), transaction(connection):
        return record(connection, [refused], policy=policy, tally=tally)


def write_logs(connection: BaseDatabaseWrapper, lines: Sequence[LogLine]) -> None:
    """Store captured lines of attempts whose lease still runs."""
    if lines:
        dialect_for(connection).insert_logs(connection, lines)


def write_notes(connection: BaseDatabaseWrapper, notes: Sequence[Note]) -> None:
    """Store starts and progress of attempts whose lease still runs."""
    if notes:
        dialect_for(connection).write_notes(connection, notes)
