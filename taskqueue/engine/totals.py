"""Totals: what was counted since the beginning, kept for good, in as many rows as are bounded.

A counter is the totals, and what has not been added to them: rollups that are not merged yet, and
arrivals. Each stands in exactly one of these at any moment, so one statement that reads all three
sees a figure that never falls, whoever was killed at whatever moment.

Tasks that were enqueued are counted by a narrow row that rides in the statement of the enqueue, at
some 3 to 5 % of its time on PostgreSQL. To raise one number in place was measured to cost more,
and would make enqueues wait for each other. To find the number from what has ended and what waits
would cost an enqueue nothing, but be exact only where all that waits is counted, and a scrape has
no time to count millions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.wording import wording_for
from taskqueue.models import Total
from taskqueue.models.figures import Figures
from taskqueue.models.total import NAME, QUEUE

MOST_LABELS = 100
"""Rows of a kind: the queues, or names, that were seen first. The rest share another row."""
REST = "…other"
SUMS = (
    "succeeded", "failed", "lost", "stopped", "returned",
    "tasks_succeeded", "tasks_failed", "tasks_cancelled", "run_seconds", "wait_seconds",
)  # fmt: skip
HISTOGRAMS = ("run_times", "wait_times")
ARRIVALS = 10_000
"""Arrivals that one transaction adds."""
LONGEST_ROUND = 5
"""Transactions in a row, that other duties have their turn."""


def add_arrivals(connection: BaseDatabaseWrapper) -> bool:
    """Add to the totals what has arrived, and delete it; whether there is more.

    Rows that another worker adds at this moment are left to it.
    """
    for _ in range(LONGEST_ROUND):
        try:
            with orm_transaction(connection):
                found = wording_for(connection).take_arrivals(connection, limit=ARRIVALS)
                if found:
                    totals = Totals(connection)
                    for queue_name, name, number, _rows in sorted(found):
                        for total in totals.of(queue_name, name):
                            total.enqueued += number
                    totals.write(["enqueued"])
        except IntegrityError:  # Another worker has just added the first of a queue or name.
            return True
        if sum(rows for _, _, _, rows in found) < ARRIVALS:
            return False
    return True


def add_figures(figures: Figures, more: Figures) -> None:
    """Add one row's figures to another's."""
    for column in SUMS:
        setattr(figures, column, getattr(figures, column) + getattr(more, column))
    for column in HISTOGRAMS:
        setattr(figures, column, _summed([getattr(figures, column), getattr(more, column)]))


class Totals:
    """All totals, locked by id, to be added to in the transaction of the caller."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._rows = Total.objects.using(connection.alias)
        self._known = {
            (total.kind, total.label): total
            for total in self._rows.select_for_update().order_by("id")
        }
        self._touched: dict[tuple[str, str], Total] = {}

    def of(self, queue_name: str, name: str) -> list[Total]:
        """The queue's and the name's, to be changed."""
        return [self._total(QUEUE, queue_name), self._total(NAME, name)]

    def write(self, columns: Iterable[str]) -> None:
        """Write these columns of those that were asked for."""
        # In one order, or two that add the same new ones would wait for each other.
        touched = [total for _, total in sorted(self._touched.items())]
        self._rows.bulk_update([total for total in touched if total.pk], list(columns))
        self._rows.bulk_create([total for total in touched if not total.pk])

    def _total(self, kind: str, label: str) -> Total:
        key = kind, label_among(label, self._labels(kind))
        total = self._known.get(key)
        if total is None:
            total = self._known[key] = Total(kind=kind, label=key[1])
        self._touched[key] = total
        return total

    def _labels(self, kind: str) -> Collection[str]:
        return {label for known, label in self._known if known == kind}


def label_among(label: str, known: Collection[str]) -> str:
    """Under which label a queue or name is counted, where these have rows already.

    One that has a row keeps it for good: what is counted under a label never falls.
    """
    is_full = len(known) - (REST in known) >= MOST_LABELS
    return REST if is_full and label not in known else label


def _summed(histograms: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for histogram in histograms:
        for bucket, count in histogram.items():
            total[bucket] = total.get(bucket, 0) + count
    return total
