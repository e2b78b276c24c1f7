"""The rate of workers that drain together; a drain in which they did not is repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from benchmarks.processes import Failed

TRIES = 5
"""How often a drain is made until its workers work at the same time."""
LEAST = 0.1
"""The share of all tasks that must have ended meanwhile: of fewer, chance decides the rate."""
# While every worker was at work: from the last one's first claim to the first one's last end.
RATE = """
WITH worked AS (
    SELECT min(claimed_at) AS began, max(finished_at) AS ended
    FROM taskqueue_lease
    GROUP BY worker_id
), together AS (
    SELECT count(*) AS workers, max(began) AS began, min(ended) AS ended FROM worked
)
SELECT
    together.workers,
    EXTRACT(epoch FROM together.ended - together.began)::float8,
    count(*) FILTER (WHERE lease.finished_at BETWEEN together.began AND together.ended),
    count(*)
FROM together
JOIN taskqueue_lease AS lease ON true
GROUP BY together.workers, together.began, together.ended
"""
Found = TypeVar("Found")


class Apart(Failed):
    """The workers of a drain were not at work at the same time."""


def rate_together(rows: Sequence[Sequence[Any]], workers: int) -> float:
    """Tasks a second while all of so many workers were at work, by what `RATE` found.

    Raises `Apart` where that was no time, or too short a one.
    """
    if not rows:
        raise Apart("No task was claimed.")
    found, seconds, number, total = rows[0]
    if found < workers:
        raise Apart(f"{found} of {workers} workers claimed tasks.")
    if seconds <= 0 or number < LEAST * total:
        raise Apart(f"{number} of {total} tasks ended while all {workers} workers were at work.")
    return float(number / seconds)


def until_together(drain: Callable[[], Found], say: Callable[[str], None]) -> Found:
    """Return what the first drain gives whose workers are at work at the same time."""
    for left in reversed(range(TRIES)):
        try:
            return drain()
        except Apart as error:
            if not left:
                raise
            say(f"  {error} The drain is made again.")
    raise AssertionError("It has returned or raised.")
