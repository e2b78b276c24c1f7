"""Totals: counts since the beginning, kept forever in a bounded number of rows.

A counter is the totals plus what has not been added to them: unmerged rollups, and arrivals. Each
count is in exactly one of these at any moment, so a statement that reads all three sees a figure
that never falls, whatever process was killed at whatever moment.

Enqueued tasks are counted by a narrow row that is inserted by the statement of the enqueue, which
costs 3 to 5 % of its time on PostgreSQL. Raising one number in place was measured to cost more, and
would make enqueues wait for each other. Deriving the number from ended and waiting tasks would cost
an enqueue nothing, but would be exact only if all waiting tasks were counted, and a scrape has no
time to count millions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.rows import COUNTS
from taskqueue.models import Total, Worker
from taskqueue.models.parts import Figures
from taskqueue.models.rollup import NAME, QUEUE
from taskqueue.models.worker import WorkerStatus

# The most rows of a kind: the names, or queues, that were seen first. The rest share another row.
#
# Somebody who may choose a queue at an enqueue could fill them. So if there is no room, a queue
# that a worker names takes the row of the least of the others.
MOST_LABELS = 100
REST = "…other"
DEFAULT = "default"
SUMS = (*COUNTS, "run_seconds", "wait_seconds")
HISTOGRAMS = ("run_times", "wait_times")
# The most arrivals that one transaction adds.
ARRIVALS = 10_000
# The most transactions in a row, so that other duties have their turn.
LONGEST_ROUND = 5


def add_arrivals(connection: BaseDatabaseWrapper) -> bool:
    """Add arrivals to the totals, and delete them. Return whether there are more.

    Rows that another worker is adding are left to it.
    """
    for _ in range(LONGEST_ROUND):
        try:
            with orm_transaction(connection):
                arrivals = dialect_for(connection).take_arrivals(connection, limit=ARRIVALS)
                if arrivals:
                    totals = Totals(connection)
                    for queue_name, name, number, _rows in sorted(arrivals):
                        for total in totals.of(queue_name, name):
                            total.enqueued += number
                    totals.write(["enqueued"])
        except IntegrityError:  # Another worker has just added the first row of a queue or name.
            return True
        if sum(rows for _, _, _, rows in arrivals) < ARRIVALS:
            return False
    return True


def add_figures(figures: Figures, more: Figures) -> None:
    """Add one row's figures to another's."""
    for column in SUMS:
        setattr(figures, column, getattr(figures, column) + getattr(more, column))
    for column in HISTOGRAMS:
        total = Counter(getattr(figures, column)) + Counter(getattr(more, column))
        setattr(figures, column, dict(total))


class Totals:
    """All totals, locked by id, to be increased in the caller's transaction."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._rows = Total.objects.using(connection.alias)
        self._known = {
            (total.kind, total.label): total
            for total in self._rows.select_for_update().order_by("id")
        }
        self._touched: dict[tuple[str, str], Total] = {}
        self._folded: list[Total] = []
        self._meant: frozenset[str] | None = None

    def of(self, queue_name: str, name: str) -> list[Total]:
        """Return the totals of the queue and of the name, to be changed."""
        return [self._total(QUEUE, queue_name), self._total(NAME, name)]

    def write(self, columns: Iterable[str]) -> None:
        """Write these columns of the totals that were requested."""
        # In a fixed order, because two workers that add the same new rows could deadlock.
        touched = [total for _, total in sorted(self._touched.items())]
        changed = ["enqueued", *SUMS, *HISTOGRAMS] if self._folded else list(columns)
        self._rows.bulk_update([total for total in touched if total.pk], changed)
        self._rows.filter(id__in=[total.pk for total in self._folded if total.pk]).delete()
        self._rows.bulk_create([total for total in touched if not total.pk])

    def _total(self, kind: str, label: str) -> Total:
        label = self._label(kind, label)
        total = self._known.get((kind, label))
        if total is None:
            total = self._known[kind, label] = Total(kind=kind, label=label)
        self._touched[kind, label] = total
        return total

    def _label(self, kind: str, label: str) -> str:
        known = {label for known, label in self._known if known == kind}
        if kind != QUEUE or label_among(label, known) == label:
            return label_among(label, known)
        if self._meant is None:
            self._meant = meant_queues(self._connection)
        own = label_among(label, known, self._meant)
        if own != REST:
            self._make_room(known - self._meant - {REST})
        return own

    def _make_room(self, labels: Set[str]) -> None:
        """Merge the least of these queues into the row of the rest."""
        least = min((self._known[QUEUE, label] for label in labels), key=_size)
        del self._known[QUEUE, least.label]
        self._touched.pop((QUEUE, least.label), None)
        self._folded.append(least)
        rest = self._total(QUEUE, REST)
        rest.enqueued += least.enqueued
        add_figures(rest, least)


def meant_queues(connection: BaseDatabaseWrapper) -> frozenset[str]:
    """Return the queues that are configured: the default one, and those that a worker names."""
    there = Worker.objects.using(connection.alias).exclude(
        status__in=[WorkerStatus.LOST.value, WorkerStatus.STOPPED.value]
    )
    return frozenset({DEFAULT}).union(*there.values_list("queues", flat=True))


def label_among(label: str, known: Set[str], meant: Set[str] = frozenset()) -> str:
    """Return the label under which a queue or name is counted, given the labels that have rows.

    A label that has a row keeps it, except that a configured queue may take the row of one that is
    not. The row of the rest then takes over that row's counts, so the sum never falls.
    """
    has_room = len(known) - (REST in known) < MOST_LABELS
    makes_room = label in meant and len(meant & known) < MOST_LABELS
    return label if label in known or has_room or makes_room else REST


def _size(total: Total) -> tuple[int, str]:
    attempts = total.succeeded + total.failed + total.lost + total.stopped + total.returned
    return max(total.enqueued, attempts), total.label
