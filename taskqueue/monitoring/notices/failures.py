"""Notices about changes in failures: jumps of the failure rate, and new kinds of error."""

from __future__ import annotations

import math
from collections.abc import Iterator

from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.notices.failing import NameRate, is_internal
from taskqueue.monitoring.notices.situation import Situation

# How many attempts at this hour of the past days a usual rate needs.
ENOUGH = 50
# A rate has jumped if it is this many times the usual one, and this many standard deviations above
# the number that the usual rate would give.
TIMES, DEVIATIONS = 3.0, 3.0
MOSTLY = 0.5


def failure_jumps(situation: Situation) -> Iterator[Notice]:
    """Yield the names whose attempts fail far more often than at this hour of the past days."""
    for rate in situation.failing.rates:
        usual = usual_share(rate)
        if usual is not None and has_jumped(rate.failed, rate.total, usual):
            yield Notice(
                "failure_jump",
                ERROR if rate.failed >= MOSTLY * rate.total else WARNING,
                rate.name,
                count=rate.failed,
                total=rate.total,
                detail=f"{100 * rate.past_failed / rate.past_total:.1f} %",
            )


def usual_share(rate: NameRate) -> float | None:
    """Return the share of attempts that usually fail; None if too few are known.

    By the rule of succession it is slightly above zero for a name that has never failed.
    """
    if rate.past_total < ENOUGH:
        return None
    return (rate.past_failed + 1) / (rate.past_total + 2)


def has_jumped(failed: int, total: int, usual: float) -> bool:
    """Return whether this many failures are neither usual nor chance."""
    expected = total * usual
    return failed > max(TIMES * expected, expected + DEVIATIONS * math.sqrt(expected))


def new_errors(situation: Situation) -> Iterator[Notice]:
    """Yield new kinds of error of the project's tasks, newest first."""
    return (each for each in new_errors_of_all(situation) if not is_internal(each.subject))


def new_errors_of_all(situation: Situation) -> Iterator[Notice]:
    """Yield new kinds of error, including those of taskqueue's own tasks, such as deliveries."""
    for error in situation.failing.new_errors:
        yield Notice(
            "new_error",
            WARNING,
            error.name,
            count=error.number,
            is_capped=error.is_capped,
            example=error.example,
            in_workflows=error.in_workflows,
            workflow="" if error.workflow_id is None else str(error.workflow_id),
            detail=error.error_class,
            seconds=(situation.now - error.first_at).total_seconds(),
            since=error.first_at,
        )
