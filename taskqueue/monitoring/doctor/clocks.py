"""Whether this process's clock and the database's agree.

taskqueue goes by the database's alone; times that code computes, such as `run_after`, are as wrong
as the clock of their host. Workers tell nothing of their clocks: run the doctor on each host.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import dialect_for
from taskqueue.monitoring.doctor.finding import OK, Finding, by_limits
from taskqueue.monitoring.doctor.words import duration

CHECK = "clocks"
SOME, MUCH = 1.0, 60.0
"""Seconds."""


def look_at_clocks(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """By how much they differ, at the least: an answer takes its time too."""
    asked, began = datetime.now(UTC), time.monotonic()
    theirs = dialect_for(connection).now(connection)
    took = time.monotonic() - began
    ahead = (theirs - asked).total_seconds()
    yield of_difference(max(0.0, -ahead, ahead - took), is_behind=ahead > 0)


def of_difference(seconds: float, *, is_behind: bool) -> Finding:
    """What a difference means; `is_behind`: of this process's clock."""
    severity = by_limits(seconds, warning=SOME, problem=MUCH)
    if severity is OK:
        return Finding(
            check=CHECK, severity=OK, seen="This host's clock agrees with the database's."
        )
    way = "behind" if is_behind else "ahead of"
    return Finding(
        check=CHECK,
        severity=severity,
        seen=f"This host's clock is {duration(seconds)} {way} the database's.",
        remedy="Keep both by NTP. Tasks are due by the database's clock.",
    )
