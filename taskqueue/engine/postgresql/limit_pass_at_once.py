"""Record successes, count them and pass their places on, all in a single statement.

While no other tasks wait, this is the only statement that a worker needs for tasks under limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome
from taskqueue.engine.limit_rows import PassingTerms
from taskqueue.engine.postgresql.duties import WRITE_ROLLUPS, rollups_text
from taskqueue.engine.postgresql.limit_pass import Passed, passed_of, passing, passing_parameters
from taskqueue.engine.postgresql.record import ENDED, SUCCEEDED, successes_parameters
from taskqueue.engine.rows import RollupRow
from taskqueue.engine.sessions import NO_EVENTS, WANTED, kept_plan, owns_session
from taskqueue.engine.statement import fetch

# Combines `RECORD_SUCCESSES`, `WRITE_ROLLUPS` and `PASS_ON` in one snapshot. The snapshot has seen
# these leases run, but nothing that was committed while the statement waited for them, such as a
# pause, a lower limit, or a partition that waits. So a statement that has waited passes nothing on,
# and frees the places.
#
# The counts include all leases. So the statement fails and changes nothing unless it records every
# lease, and none of a workflow, which would have to be notified. It also fails if it has waited so
# long that the counts may have been merged, because they would be counted twice.
#
# Locks: leases by id, then their tasks; then ready tasks in claim order, skipping locked ones; last
# the rollups of this process, because nothing reads what `counted` writes. `clock` reads what was
# recorded, and `given` sorts it, so the leases and their tasks are locked by then.
RECORD_AND_PASS = passing(
    f"""{ENDED}, done AS (
{SUCCEEDED}RETURNING held.id AS lease_id, task.step_id
), counted AS ({WRITE_ROLLUPS}), clock AS MATERIALIZED (
    -- Only then, as a row of the count.
    SELECT clock_timestamp() AS now, whole.number, whole.steps
    FROM (SELECT count(*) AS number, count(step_id) AS steps FROM done) AS whole
)""",  # noqa: S608  (of constants)
    ended="JOIN done ON done.lease_id = ended.lease_id",
    is_taken="finished_at IS NULL AND id <> ALL (asked.leases)",
    is_new="clock.now < statement_timestamp() + interval '0.1 seconds'",
    check="""CASE
        WHEN whole.number < %(expected)s::int OR whole.steps > 0
            OR clock_timestamp() > statement_timestamp() + interval '30 seconds'
        THEN (whole.number || ' of ' || %(expected)s::int || ' are recorded')::int
    END""",
    checked="CROSS JOIN clock AS whole",
)


def may_pass_at_once(connection: BaseDatabaseWrapper) -> bool:
    """Return whether this session may record in a single-statement transaction.

    It must keep plans, and nobody may want events, because this statement does not write events in
    bulk.
    """
    return owns_session(connection) and connection.settings_dict.get(WANTED) == NO_EVENTS


def record_and_pass(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    kept_for: timedelta | None,
    rollups: Sequence[RollupRow],
    *,
    ended: Mapping[int, str],
    terms: PassingTerms,
) -> Passed:
    """Record these successes, write rollups, and pass places on as `pass_on` does.

    `ended`: all of their leases, with their partitions. Raises the database's error, also if not
    all successes can be recorded; then nothing is.
    """
    parameters = successes_parameters(outcomes, kept_for, list(ended)) | {
        "expected": len(outcomes),
        "rollups": rollups_text(rollups),
        **passing_parameters(ended, terms),
    }
    with kept_plan(connection) as series:
        return passed_of(fetch(connection, RECORD_AND_PASS, parameters | {"series": series}))
