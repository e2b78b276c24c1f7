"""Counters: totals, and rows that have not been added to them yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from taskqueue.core.histogram import Histogram
from taskqueue.engine.statement import Statement
from taskqueue.engine.totals import DEFAULT, label_among
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

    enqueued: int = 0
    attempts: list[int] = field(default_factory=lambda: [0] * len(OUTCOMES))
    finished: list[int] = field(default_factory=lambda: [0] * len(ENDS))
    run_seconds: float = 0.0
    run_times: Histogram = field(default_factory=Histogram)
    wait_seconds: float = 0.0
    wait_times: Histogram = field(default_factory=Histogram)

    @property
    def lost(self) -> int:
        """Attempts whose lease was lost."""
        return self.attempts[OUTCOMES.index("lost")]

    def add(self, row: tuple[Any, ...]) -> None:
        """Add the counts of a row."""
        counts = [int(count) for count in row[:9]]
        self.enqueued += counts[0]
        for place, count in enumerate(counts[1:6]):
            self.attempts[place] += count
        for place, count in enumerate(counts[6:9]):
            self.finished[place] += count
        self.run_seconds += row[9]
        self.wait_seconds += row[10]
        self.run_times.update(summed(row[11]))
        self.wait_times.update(summed(row[12]))


class Labels:
    """Gives each queue, or each name, one of a bounded number of labels."""

    def __init__(self, known: Iterable[str], meant: frozenset[str] = frozenset()) -> None:
        self._known, self._meant = set(known), meant

    def of(self, name: str) -> str:
        """Return its own label if it has one or there is room, else that of the rest.

        As the totals will count it: what stands under a label must not go to another later. One
        that is to be made room for stands beside the others until then.
        """
        label = label_among(name, self._known, self._meant)
        self._known.add(label)
        return label


@dataclass
class Counters:
    """Counts by the labels of queues, and of names."""

    queues: dict[str, Counted]
    names: dict[str, Counted]


def counters(meant: frozenset[str] = frozenset({DEFAULT})) -> Counters:
    """Return all counters, in one statement. `meant` are the queues that workers name."""
    rows = read(COUNTED)
    totals = [row for row in rows if row[0] == "total"]
    found: dict[str, defaultdict[str, Counted]] = {
        kind: defaultdict(Counted) for kind in (QUEUE, NAME)
    }
    for _, kind, label, *figures in totals:
        found[kind][label].add(tuple(figures))
    queues, names = Labels(found[QUEUE], meant), Labels(found[NAME])
    for kind, queue_name, name, *figures in sorted(rows, key=lambda row: row[1:3]):
        if kind != "total":
            found[QUEUE][queues.of(queue_name)].add(tuple(figures))
            found[NAME][names.of(name)].add(tuple(figures))
    return Counters(dict(found[QUEUE]), dict(found[NAME]))
