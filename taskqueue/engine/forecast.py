"""Promoting what is due, and looking in the same statement at what else a worker has to do.

A look is a query that belongs to one duty, and stands beside what that duty does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.postgresql.claim import READY_QUEUES as POSTGRESQL_READY_QUEUES
from taskqueue.engine.sqlite.claim import READY_QUEUES as SQLITE_READY_QUEUES
from taskqueue.engine.statement import Fact, Moment, Statement

# On PostgreSQL what is due by now is promoted by the same statement, or held by somebody else.
NEXT_DUE = Moment(
    postgresql="""
        SELECT min(run_after)
        FROM taskqueue_task
        WHERE status IN ('retrying', 'scheduled') AND run_after > statement_timestamp()
    """,
    sqlite="""
        SELECT min(run_after)
        FROM taskqueue_task
        WHERE status IN ('retrying', 'scheduled')
    """,
)
# Ready tasks of paused queues are passed over queue by queue, however many they are.
HAS_READY = Fact(
    postgresql=f"EXISTS ({POSTGRESQL_READY_QUEUES})", sqlite=f"EXISTS ({SQLITE_READY_QUEUES})"
)


@dataclass(frozen=True)
class Forecast:
    """The number of promoted tasks, and the results of the looks."""

    promoted: int
    _seen: dict[Statement, Any]

    def until(self, moment: Moment) -> float | None:
        """Seconds from the look until that moment; None: it is not known to come."""
        seconds: float | None = self._seen[moment]
        return seconds

    def is_over(self, moment: Moment) -> bool:
        """Return whether that moment has come."""
        seconds = self.until(moment)
        return seconds is not None and seconds <= 0

    def holds(self, fact: Fact) -> bool:
        """Return whether the fact is true."""
        return bool(self._seen[fact])

    def number(self, fact: Fact) -> int:
        """The number that the query gives."""
        return int(self._seen[fact])

    @property
    def has_ready(self) -> bool:
        """Return whether a task may be claimed. PostgreSQL's look does not see promoted tasks."""
        return self.promoted > 0 or self.holds(HAS_READY)


def promote(
    connection: BaseDatabaseWrapper, looks: Sequence[Statement], *, worker_id: int, limit: int
) -> Forecast:
    """Make tasks ready that are due, up to the limit, and look at what comes next."""
    promoted, *values = dialect_for(connection).promote(
        connection, tuple(looks), worker_id=worker_id, limit=limit
    )
    return Forecast(promoted, dict(zip(looks, values, strict=True)))
