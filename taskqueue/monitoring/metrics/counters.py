"""Counters: totals, and rows that have not been added to them yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from taskqueue.core.histogram import Histogram
from taskqueue.engine.statement import Statement
from taskqueue.engine.totals import DEFAULT, SUMS, label_among
from taskqueue.models.total import NAME, QUEUE
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import summed

# One statement, so that one snapshot sees a figure in exactly one of the three. The totals are few
# rows; of rollups only those stand there that are not merged yet, of the last minutes.
_COUNTED = """
SELECT
    'total', kind, label, enqueued, succeeded, failed, lost, stopped, returned,
    tasks_succeeded, tasks_failed, tasks_cancelled, run_seconds, wait_seconds,
    CAST(run_times AS text), CAST(wait_times AS text)
FROM taskqueue_total
UNION ALL
SELECT
    'rollup', queue_name, name, 0,
    CAST(sum(succeeded) AS bigint), CAST(sum(failed) AS bigint), CAST(sum(lost) AS bigint),
    CAST(sum(stopped) AS bigint), CAST(sum(returned) AS bigint),
    CAST(sum(tasks_succeeded) AS bigint), CAST(sum(tasks_failed) AS bigint),
    CAST(sum(tasks_cancelled) AS bigint),
    sum(run_seconds), sum(wait_seconds),
    string_agg(CAST(run_times AS text), ','), string_agg(CAST(wait_times AS text), ',')
FROM taskqueue_rollup
WHERE resolution = 0
GROUP BY queue_name, name
UNION ALL
SELECT
    'arrival', queue_name, name, CAST(sum(number) AS bigint), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', ''
FROM taskqueue_arrival
GROUP BY queue_name, name
"""
COUNTED = Statement(postgresql=_COUNTED, sqlite=_COUNTED.replace("string_agg", "group_concat"))

OUTCOMES = ("succeeded", "failed", "lost", "stopped", "returned")
ENDS = ("succeeded", "failed", "cancelled")


@dataclass
class Counted:
    """The counts of one queue or name."""

    # By column: `enqueued`, and those of `SUMS`.
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("enqueued", *SUMS), 0))
    run_times: Histogram = field(default_factory=Histogram)
    wait_times: Histogram = field(default_factory=Histogram)

    def add(self, figures: Sequence[Any]) -> None:
        """Add the figures of a row."""
        *sums, run_times, wait_times = figures
        for column, figure in zip(self.sums, sums, strict=True):
            self.sums[column] += figure
        self.run_times.update(summed(run_times))
        self.wait_times.update(summed(wait_times))


Counters = dict[str, Counted]


def counters(meant: frozenset[str] = frozenset({DEFAULT})) -> tuple[Counters, Counters]:
    """Return the counters of queues and of names by their labels, in one statement.

    `meant` are the queues that workers name.
    """
    rows = read(COUNTED)
    found: dict[str, defaultdict[str, Counted]] = {
        kind: defaultdict(Counted) for kind in (QUEUE, NAME)
    }
    for _, kind, label, *figures in (row for row in rows if row[0] == "total"):
        found[kind][label].add(figures)
    # Under a label as the totals will count it: what stands under one must not go to another later.
    # One that is to be made room for stands beside the others until then.
    for source, queue_name, name, *figures in sorted(rows, key=lambda row: row[1:3]):
        if source != "total":
            found[QUEUE][label_among(queue_name, found[QUEUE].keys(), meant)].add(figures)
            found[NAME][label_among(name, found[NAME].keys())].add(figures)
    return dict(found[QUEUE]), dict(found[NAME])
