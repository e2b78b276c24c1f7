"""Counting attempts and ends of tasks, in the transaction that records them.

Each process, and each thread that records, writes its own rollups, so that none waits for another.
A row holds absolute numbers: those that were counted here and committed, plus those of this
transaction. After an error it is unknown what was committed, so a new row is started.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol
from uuid import uuid4

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core import histogram
from taskqueue.core.outcomes import WHOLE_RUNS, Outcome, Recorded
from taskqueue.engine.connections import installed
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.rows import COUNTS, Ended, RollupRow
from taskqueue.models import Lease, Task

# How long one row is updated; it counts for the moment at which it was begun.
PART_SECONDS = 10.0


class SubjectLike(Protocol):
    """The attributes that are needed of the task of a lease."""

    # Read-only, so that a named tuple fits.
    @property
    def task_id(self) -> str: ...
    @property
    def queue_name(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def stays(self) -> bool:
        """Whether its next attempt must be on the same worker."""

    @property
    def ready_at(self) -> float | None:
        """When the task became ready, by the monotonic clock; None if unknown."""

    @property
    def is_step(self) -> bool:
        """Whether it belongs to a step of a workflow; unknown if the task was looked up."""


class Subject(NamedTuple):
    """The task of a lease, from a lookup."""

    task_id: str
    queue_name: str
    name: str
    ready_at: float | None
    stays: bool = False
    is_step: bool = False


class _Row:
    """The counts of one queue and task name."""

    def __init__(self, queue_name: str, name: str) -> None:
        self.id = str(uuid4())
        self.queue_name, self.name = queue_name, name
        # Numbers by the columns of `COUNTS`.
        self.counts: Counter[str] = Counter()
        self.run_seconds = self.wait_seconds = self.slowest_seconds = 0.0
        self.run_times: Counter[int] = Counter()
        self.wait_times: Counter[int] = Counter()
        self.slowest_task_id: str | None = None

    def ran(self, seconds: list[float], task_ids: list[str]) -> None:
        self.run_seconds += sum(seconds)
        self.run_times.update(histogram.counted(seconds))
        longest = max(seconds, default=0.0)
        if longest > self.slowest_seconds:
            self.slowest_seconds = longest
            self.slowest_task_id = task_ids[seconds.index(longest)]

    def waited(self, seconds: list[float]) -> None:
        self.wait_seconds += sum(seconds)
        self.wait_times.update(histogram.counted(seconds))

    def packed(self) -> RollupRow:
        return RollupRow(
            id=self.id,
            queue_name=self.queue_name,
            name=self.name,
            **{name: self.counts[name] for name in COUNTS},
            run_seconds=self.run_seconds,
            run_times=json.dumps(self.run_times),
            wait_seconds=self.wait_seconds,
            wait_times=json.dumps(self.wait_times),
            slowest_seconds=self.slowest_seconds,
            slowest_task_id=self.slowest_task_id,
        )


class Tally:
    """The counts of one thread. Threads that record at the same time need one each."""

    def __init__(
        self, subject_of: Callable[[int], SubjectLike | None] = lambda lease_id: None
    ) -> None:
        """`subject_of` returns the subject of a known lease; others are read from the database."""
        self._subject_of = subject_of
        self._rows: dict[tuple[str, str], _Row] = {}
        self._unwritten: set[_Row] = set()
        self._began_at = 0.0

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Wrap a transaction that counts: what does not commit is not counted."""
        try:
            yield
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Forget everything, because it is unknown whether the last counts were committed."""
        self._rows = {}
        self._unwritten.clear()

    def subjects(
        self, connection: BaseDatabaseWrapper, lease_ids: Iterable[int]
    ) -> dict[int, SubjectLike]:
        """Return the subject of each lease; a withdrawn lease may be missing."""
        known: dict[int, SubjectLike] = {}
        unknown: list[int] = []
        for lease_id in lease_ids:
            subject = self._subject_of(lease_id)
            if subject is None:
                unknown.append(lease_id)
            else:
                known[lease_id] = subject
        return known | _look_up(connection, unknown) if unknown else known

    def known_plain(self, lease_ids: Iterable[int]) -> dict[int, SubjectLike] | None:
        """Return the subject of each lease, if all are known and none belongs to a workflow."""
        subjects = {lease_id: self._subject_of(lease_id) for lease_id in lease_ids}
        found = {
            lease_id: subject
            for lease_id, subject in subjects.items()
            if subject is not None and not subject.is_step
        }
        return found if len(found) == len(subjects) else None

    def add_attempts(
        self,
        outcomes: Sequence[Outcome],
        recorded: Mapping[int, Recorded],
        subjects: Mapping[int, SubjectLike],
        *,
        now: float,
    ) -> None:
        """Count the recorded attempts; ages in `outcomes` are relative to `now`."""
        self._begin()
        alike: dict[tuple[str, str], list[tuple[Outcome, SubjectLike]]] = {}
        for outcome in outcomes:
            # By position, here and below, because this runs for every attempt.
            subject = subjects.get(outcome[0])
            if subject is not None and recorded[outcome[0]][1] is not None:
                key = subject.queue_name, subject.name
                if (pairs := alike.get(key)) is None:
                    pairs = alike[key] = []
                pairs.append((outcome, subject))
        for key, pairs in alike.items():
            self._add_alike(self._row(*key), pairs, recorded, now)

    @staticmethod
    def _add_alike(
        row: _Row,
        pairs: list[tuple[Outcome, SubjectLike]],
        recorded: Mapping[int, Recorded],
        now: float,
    ) -> None:
        row.counts.update([str(recorded[outcome[0]][1]) for outcome, _ in pairs])
        ran = [
            (outcome[3] - outcome[2], subject.task_id)
            for outcome, subject in pairs
            if outcome[3] is not None and outcome[1] in WHOLE_RUNS
        ]
        row.ran([seconds for seconds, _ in ran], [task_id for _, task_id in ran])
        row.waited(
            [
                max(0.0, now - outcome[3] - subject.ready_at)
                for outcome, subject in pairs
                if outcome[3] is not None and subject.ready_at is not None
            ]
        )

    def add_lost(self, queue_name: str, name: str, number: int) -> None:
        """Count lost attempts that nobody began."""
        self._begin()
        self._row(queue_name, name).counts["lost"] += number

    def add_ends(self, ended: Iterable[Ended]) -> None:
        """Count tasks that ended."""
        self._begin()
        counts = Counter(task[1:4] for task in ended)
        for (queue_name, name, status), number in counts.items():
            self._row(queue_name, name).counts[f"tasks_{status}"] += number

    def write(self, connection: BaseDatabaseWrapper) -> None:
        """Write what was counted since the last write."""
        if packed := self.take():
            dialect_for(connection).write_rollups(connection, packed)

    def take(self) -> list[RollupRow]:
        """Return what was counted since the last write, for the caller to write."""
        packed = [row.packed() for row in self._unwritten]
        self._unwritten.clear()
        return packed

    def _begin(self) -> None:
        # By the current time, once all locks are held: after waiting for one it may be so late that
        # the row has been merged, and would be counted again.
        now = time.monotonic()
        if now - self._began_at > PART_SECONDS:
            self._rows = {}
            self._began_at = now

    def _row(self, queue_name: str, name: str) -> _Row:
        row = self._rows.get((queue_name, name))
        if row is None:
            row = self._rows[queue_name, name] = _Row(queue_name, name)
        self._unwritten.add(row)
        return row


def _look_up(connection: BaseDatabaseWrapper, lease_ids: Sequence[int]) -> dict[int, Subject]:
    # Not as a join, which bad statistics would turn into a scan of all leases or tasks.
    with installed(connection):
        leases = Lease.objects.using(connection.alias).filter(id__in=lease_ids)
        task_ids = dict(leases.values_list("id", "task_id"))
        tasks = Task.objects.using(connection.alias).filter(id__in=set(task_ids.values()))
        names = {row[0]: row for row in tasks.values_list("id", "queue_name", "name")}
    return {
        lease_id: Subject(str(task_id), *names[task_id][1:], None)
        for lease_id, task_id in task_ids.items()
    }
