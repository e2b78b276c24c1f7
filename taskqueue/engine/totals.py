"""Totals: counts since the beginning, kept forever in a bounded number of rows.

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

# Rows of a kind: the names, or queues, that were seen first. The rest share another row.
#
# Whoever may choose a queue at an enqueue could fill them: where there is no room, a queue that a
# worker names takes the row of the least of the others.
MOST_LABELS = 100
REST = "…other"
DEFAULT = "default"
SUMS = (*COUNTS, "run_seconds", "wait_seconds")
HISTOGRAMS = ("run_times", "wait_times")
# Arrivals that one transaction adds.
ARRIVALS = 10_000
# Transactions in a row, that other duties have their turn.
LONGEST_ROUND = 5


def add_arrivals(connection: BaseDatabaseWrapper) -> bool:
    """Add to the totals what has arrived, and delete it; whether there is more.

    Rows that another worker adds at this moment are left to it.
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
        except IntegrityError:  # Another worker has just added the first of a queue or name.
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
    """All totals, locked by id, to be added to in the transaction of the caller."""

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
        """The queue's and the name's, to be changed."""
        return [self._total(QUEUE, queue_name), self._total(NAME, name)]

    def write(self, columns: Iterable[str]) -> None:
        """Write these columns of those that were asked for."""
        # In one order, or two that add the same new ones would wait for each other.
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
        """Fold the least of these queues into the row of the rest."""
        least = min((self._known[QUEUE, label] for label in labels), key=_size)
        del self._known[QUEUE, least.label]
        self._touched.pop((QUEUE, least.label), None)
        self._folded.append(least)
        rest = self._total(QUEUE, REST)
        rest.enqueued += least.enqueued
        add_figures(rest, least)


def meant_queues(connection: BaseDatabaseWrapper) -> frozenset[str]:
    """The queues that are not somebody's whim: the default one, and those that a worker names."""
    there = Worker.objects.using(connection.alias).exclude(
        status__in=[WorkerStatus.LOST.value, WorkerStatus.STOPPED.value]
    )
    return frozenset({DEFAULT}).union(*there.values_list("queues", flat=True))


def label_among(label: str, known: Set[str], meant: Set[str] = frozenset()) -> str:
    """Under which label a queue or name is counted, where these have rows already.

    One that has a row keeps it, but for a queue that is not meant, whose row one that is may take.
    The row of the rest then takes over what was counted: the sum of all never falls.
    """
    has_room = len(known) - (REST in known) < MOST_LABELS
    makes_room = label in meant and len(meant & known) < MOST_LABELS
    return label if label in known or has_room or makes_room else REST


def _size(total: Total) -> tuple[int, str]:
    attempts = total.succeeded + total.failed + total.lost + total.stopped + total.returned
    return max(total.enqueued, attempts), total.label
