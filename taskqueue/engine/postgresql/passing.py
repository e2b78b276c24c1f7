"""Recording successes whose places pass on to what follows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.event_kinds import EventKind
from taskqueue.core.outcomes import SUCCESS, Outcome, Recorded, success_of
from taskqueue.engine.postgresql import limit_pass
from taskqueue.engine.postgresql.duties import rollups_text
from taskqueue.engine.postgresql.events import published_by_statement
from taskqueue.engine.postgresql.limit_lock import bare
from taskqueue.engine.postgresql.record import successes_parameters
from taskqueue.engine.postgresql.values import numbers
from taskqueue.engine.rows import Claimed, RollupRow
from taskqueue.engine.sessions import NO_EVENTS, WANTED, kept_plan, owns_session
from taskqueue.engine.statement import fetch


class Passed(NamedTuple):
    """The tasks that took the places of others, and what else there is to claim."""

    claimed: list[Claimed]
    # The partitions of their leases.
    passing: dict[int, str]
    # Whether places were given back, or partitions may be open.
    has_news: bool
    # Whether places were given back.
    has_freed: bool
    # Whether a task waits that belongs to no partition.
    has_others: bool


@dataclass(kw_only=True)
class Passing:
    """Leases that end, and whose places pass on to the tasks that follow in their partitions.

    Where something else may be there to claim, up to `most`, or else all of them.
    """

    # With their partitions.
    leases: Mapping[int, str]
    worker: str
    # The queues of this worker.
    served: Sequence[str]
    unknown: Sequence[str]
    lease_duration: timedelta
    most: int
    # What has come of it.
    passed: Passed | None = None

    @staticmethod
    def may_go_at_once(connection: BaseDatabaseWrapper) -> bool:
        """Return whether this session may record them in a transaction of one statement.

        It keeps the plan, and nobody wants the events, of which that writes none of many at once.
        """
        return owns_session(connection) and connection.settings_dict.get(WANTED) == NO_EVENTS

    def record(
        self,
        connection: BaseDatabaseWrapper,
        outcomes: Sequence[Outcome],
        kept_for: timedelta | None,
    ) -> dict[int, Recorded]:
        """Record successes as the dialect does, and pass their places on; by lease."""
        succeeded = EventKind.TASK_SUCCEEDED
        with published_by_statement(connection, succeeded, len(outcomes)) as publishes:
            statement = limit_pass.PASS_WITH_EVENTS if publishes else limit_pass.RECORD_AND_PASS
            return self._run(connection, statement, outcomes, kept_for)

    def record_at_once(
        self,
        connection: BaseDatabaseWrapper,
        outcomes: Sequence[Outcome],
        kept_for: timedelta | None,
        rollups: Sequence[RollupRow],
    ) -> dict[int, Recorded]:
        """Do the same and write what it counts, as a transaction of its own.

        Raises what the database raises, also where not all are recorded. Then nothing is.
        """
        return self._run(
            connection, limit_pass.PASS_AT_ONCE, outcomes, kept_for, rollups=rollups_text(rollups)
        )

    def _run(
        self,
        connection: BaseDatabaseWrapper,
        statement: str,
        outcomes: Sequence[Outcome],
        kept_for: timedelta | None,
        **further: Any,
    ) -> dict[int, Recorded]:
        parameters = successes_parameters(outcomes, kept_for) | {
            "expected": len(outcomes),
            "passing": numbers(list(self.leases)),
            "partitions": "{" + ",".join(self.leases.values()) + "}",
            "served": list(self.served),
            "unknown": list(self.unknown),
            "worker": self.worker,
            "lease_duration": self.lease_duration,
            "most": self.most,
            **further,
        }
        with kept_plan(connection) as series:
            rows = fetch(connection, statement, parameters | {"series": series})
        recorded, has_news, has_others, has_freed = rows[0][:4]
        claimed = [Claimed._make((*row[5:], True)) for row in rows if row[5] is not None]
        self.passed = Passed(
            claimed=claimed,
            passing={row[5]: bare(row[4]) for row in rows if row[5] is not None},
            has_news=has_news or has_freed,
            has_freed=has_freed,
            has_others=has_others,
        )
        if recorded is None:
            return {outcome.lease_id: SUCCESS for outcome in outcomes}
        return {lease_id: success_of(step_id) for lease_id, step_id in json.loads(recorded)}
