"""What happened, recorded outside and inside the database, and the invariants that must hold of it.

The journal is a file to which bodies append; all processes of a host share its clock. Leases and
tasks are read from their tables, changes of status from a table that a trigger fills. The attempts
of a task are ordered by their number, not by time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from taskqueue.core.outcomes import may_follow
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.models import Lease, Rollup, Task
from taskqueue.monitoring.metrics.figures import ENDS, OUTCOMES, counters
from taskqueue.results import TaskResult
from tests.sample.models import Effect

EXPIRED = "The lease ran out"


class Line(NamedTuple):
    """What a body appended."""

    task_id: UUID
    attempt: int
    pid: int
    at: float
    text: str


class Journal:
    """The file to which bodies append."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[Line]:
        """What was appended, in the order of writing. A line without its end is not there yet."""
        if not self.path.exists():
            return []
        text = self.path.read_text()
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [_line(*line.split(" ", 4)) for line in whole]

    def of(self, result: TaskResult[Any]) -> list[Line]:
        """The lines of one task."""
        return [line for line in self.lines() if line.task_id == result.id]

    def starts(self) -> Counter[UUID]:
        """How often each task's body started."""
        return Counter(line.task_id for line in self.lines() if line.text == "start")


def _line(task_id: str, attempt: str, pid: str, at: str, text: str) -> Line:
    return Line(UUID(task_id), int(attempt), int(pid), float(at), text)


def leases_by_task() -> dict[UUID, list[Lease]]:
    """All leases, task by task in the order of attempts."""
    leases: dict[UUID, list[Lease]] = defaultdict(list)
    for lease in Lease.objects.order_by("attempt"):
        leases[lease.task_id].append(lease)
    return leases


def all_ended(results: Iterable[TaskResult[Any]]) -> bool:
    """Whether these tasks have finished."""
    ids = {result.id for result in results}
    finished = Task.objects.filter(status__in=FINISHED).values_list("id", flat=True)
    return ids <= set(finished)


# The invariants, by their numbers in GUARANTEES.md


def assert_none_lost(results: Iterable[TaskResult[Any]]) -> None:
    """1: what was enqueued exists, and has ended."""
    statuses = dict(Task.objects.values_list("id", "status"))
    open_or_gone = {
        result.id: statuses.get(result.id)
        for result in results
        if statuses.get(result.id) not in FINISHED
    }
    assert not open_or_gone


def assert_ownership_does_not_overlap(journal: Journal | None = None) -> None:
    """3: one lease after the other, with rising numbers; so do the bodies' own marks."""
    for leases in leases_by_task().values():
        attempts = [lease.attempt for lease in leases]
        assert attempts == sorted(set(attempts))
        for before, after in pairwise(leases):
            assert before.finished_at is not None
            assert before.finished_at <= after.claimed_at, (before, after)
    lines: dict[UUID, list[Line]] = defaultdict(list)
    for line in journal.lines() if journal else ():
        lines[line.task_id].append(line)
    for of_task in lines.values():
        by_time = sorted(of_task, key=lambda line: line.at)
        attempts = [line.attempt for line in by_time]
        assert attempts == sorted(attempts), by_time


def assert_takeovers_followed_expiry() -> None:
    """4: what was taken over had expired by the database's clock."""
    for lease in Lease.objects.filter(status="lost", error_message__startswith=EXPIRED):
        assert lease.expires_at < lease.finished_at


def assert_atomic_effects(results: Iterable[TaskResult[Any]]) -> None:
    """6: exactly one effect of an atomic task that succeeded, none of any other."""
    effects = Counter(Effect.objects.values_list("task_id", flat=True))
    statuses = dict(Task.objects.values_list("id", "status"))
    for result in results:
        expected = 1 if statuses[result.id] == "succeeded" else 0
        assert effects[result.id] == expected, result


def assert_starts_are_bounded(results: Iterable[TaskResult[Any]]) -> None:
    """9: every start is a failure, a crash, or recorded as what else it was."""
    leases = leases_by_task()
    rows = Task.objects.in_bulk([result.id for result in results])
    for task in rows.values():
        ends = Counter(lease.status for lease in leases[task.id])
        assert task.attempt == len(leases[task.id]), task
        assert ends["failed"] == task.failures, task
        assert ends["lost"] >= task.crashes, task
        assert task.crashes <= task.max_crashes, task
        # A success, a stop, or neither for a task that failed.
        assert ends["succeeded"] + ends["stopped"] <= 1, task
        assert ends["running"] == 0, task


class Change(NamedTuple):
    """A change of a task's status."""

    before: str
    after: str


@contextmanager
def recorded_changes() -> Iterator[list[Change]]:
    """7: a trigger writes down every change of a status; each must stand in the table."""
    changes: list[Change] = []
    _execute(TRIGGERS[connection.vendor])
    try:
        yield changes
        with connection.cursor() as cursor:
            cursor.execute("SELECT before, after FROM status_change ORDER BY id")
            changes += [Change(*row) for row in cursor.fetchall()]
    finally:
        _execute(NO_TRIGGERS[connection.vendor])


def assert_only_known_transitions(changes: Iterable[Change]) -> None:
    """7: only transitions in the table."""
    strange = {
        change
        for change in changes
        if not may_follow(TaskStatus(change.before), TaskStatus(change.after))
    }
    assert not strange


def _execute(statements: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


TRIGGERS = {
    "postgresql": (
        "CREATE TABLE status_change (id bigserial PRIMARY KEY, before text, after text)",
        """
        CREATE FUNCTION write_status_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO status_change (before, after) VALUES (OLD.status, NEW.status);
            RETURN NULL;
        END $$
        """,
        """
        CREATE TRIGGER status_change AFTER UPDATE ON taskqueue_task
        FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION write_status_change()
        """,
    ),
    "sqlite": (
        "CREATE TABLE status_change (id integer PRIMARY KEY, before text, after text)",
        """
        CREATE TRIGGER status_change_trigger AFTER UPDATE OF status ON taskqueue_task
        WHEN OLD.status <> NEW.status
        BEGIN
            INSERT INTO status_change (before, after) VALUES (OLD.status, NEW.status);
        END
        """,
    ),
}
NO_TRIGGERS = {
    "postgresql": (
        "DROP TRIGGER status_change ON taskqueue_task",
        "DROP FUNCTION write_status_change",
        "DROP TABLE status_change",
    ),
    "sqlite": ("DROP TRIGGER status_change_trigger", "DROP TABLE status_change"),
}


def assert_rollups_count_every_attempt() -> None:
    """What was counted is what the leases and tasks say, whoever was killed: in the charts, and in
    the counters of the metrics."""
    attempts = Counter(Lease.objects.values_list("status", flat=True))
    names = ("succeeded", "failed", "lost", "stopped", "returned")
    counted = Rollup.objects.aggregate(**{name: Sum(name) for name in names})
    assert counted == {name: attempts[name] for name in names}
    ended = Counter(Task.objects.filter(finished_at__isnull=False).values_list("status", flat=True))
    ends = Rollup.objects.aggregate(**{name: Sum(f"tasks_{name}") for name in ended})
    assert ends == ended
    totals = [counted.sums for counted in counters()[0].values()]
    assert sum(sums["enqueued"] for sums in totals) == Task.objects.count()
    for name in OUTCOMES:
        assert sum(sums[name] for sums in totals) == attempts[name], name
    for name in ENDS:
        assert sum(sums[f"tasks_{name}"] for sums in totals) == ended[name], name
