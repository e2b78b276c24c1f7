"""A history sorted by task, for the invariants."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeVar

from taskqueue.core.states import FINISHED
from tests.chaos.history import (
    NO_ANSWER,
    Change,
    EffectRow,
    Enqueue,
    History,
    LeaseRow,
    Line,
    Stall,
    TaskRow,
)
from tests.chaos.lock_probe import beside
from tests.chaos.pace import kept, kept_from_workers

EXPIRED = "The lease ran out"
"""How the message of a lease begins that was taken over."""
ENDED_ON_HOST = "Its worker's processes had ended"
"""And of one whose worker was proven to have ended."""
ENDED_BY_HAND = "Its worker was lost, and somebody ended"
"""And of one that a person ended."""
NO_CRASH = (
    "The worker could not renew its leases",
    "The database went away",
    "The child process could not reach the database",
    "The worker ended before it ran its part",
)
"""And those of leases that were lost without a crash of their bodies."""

REOPENING = ("retry", "resolve")
"""The acts of people after which steps of a workflow run again."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Violation(NamedTuple):
    """Something that must never be."""

    invariant: int
    sentence: str
    task_id: str = ""
    details: str = ""

    def __str__(self) -> str:
        about = f" (task {self.task_id})" if self.task_id else ""
        return f"{self.invariant}: {self.sentence}{about} {self.details}".rstrip()


class Evidence:
    """The rows of a history by what they are about; each list in the order in which it happened."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.bounds = history.bounds

    @cached_property
    def tasks(self) -> dict[str, TaskRow]:
        """The tasks that are there, by id."""
        return {task.id: task for task in self.history.tasks}

    @cached_property
    def leases(self) -> dict[str, list[LeaseRow]]:
        """The attempts of each task, by their number."""
        return _by((row.task_id, row) for row in _by_attempt(self.history.leases))

    @cached_property
    def effects(self) -> dict[str, list[EffectRow]]:
        """What bodies wrote to the database."""
        return _by((row.task_id, row) for row in self.history.effects)

    @cached_property
    def lines(self) -> dict[str, list[Line]]:
        """What bodies appended, by the host's clock."""
        lines = sorted(self.history.lines, key=lambda line: line.at)
        return _by((line.task_id, line) for line in lines)

    @cached_property
    def task_changes(self) -> dict[str, list[Change]]:
        """What became of each task's row."""
        return self._changes("task")

    @cached_property
    def lease_changes(self) -> dict[str, list[Change]]:
        """What became of the rows of each task's leases."""
        return self._changes("lease")

    @cached_property
    def log_changes(self) -> dict[str, list[Change]]:
        """Lines that were written of attempts that had ended."""
        return self._changes("log")

    def _changes(self, noun: str) -> dict[str, list[Change]]:
        changes = sorted(self.history.changes)
        return _by((change.task_id, change) for change in changes if change.noun == noun)

    @cached_property
    def pruned(self) -> dict[str, str]:
        """The tasks that were deleted, with the status that they had then."""
        return {
            task_id: changes[-1].before
            for task_id, changes in self.task_changes.items()
            if not changes[-1].after and task_id not in self.tasks
        }

    @cached_property
    def enqueue_of(self) -> dict[str, Enqueue]:
        """What the client knows of each task: by its id, or by its sequence for want of one."""
        by_sequence = {enqueue.sequence: enqueue for enqueue in self.history.enqueues}
        found = {
            task_id: enqueue
            for enqueue in self.history.enqueues
            if enqueue.state == "ok" and enqueue.created
            for task_id in enqueue.task_ids
        }
        for task in self.tasks.values():
            if task.id not in found and task.sequence in by_sequence:
                found[task.id] = by_sequence[task.sequence]
        return found

    @cached_property
    def unanswered(self) -> list[Enqueue]:
        """Enqueues of which only the database can tell what became of them."""
        return [enqueue for enqueue in self.history.enqueues if enqueue.state in NO_ANSWER]

    @cached_property
    def workflow_changes(self) -> dict[str, list[Change]]:
        """What became of each workflow's status."""
        return self._changes("workflow")

    @cached_property
    def retried(self) -> dict[str, int]:
        """How often each task was retried by hand, alone or with its workflow, at most."""
        audits = self.history.audits
        verbs = ("retry", "restart")
        found = Counter(row.subject for row in audits if row.verb.startswith(verbs))
        workflow_of = {step.id: step.workflow_id for step in self.history.steps}
        for member in self.history.members:
            found[member.task_id] += self.reopened[workflow_of.get(member.step_id, "")]
        # Of what a retry deleted nobody can tell which workflow it belonged to.
        for task_id in self.pruned:
            found[task_id] += sum(self.reopened.values())
        return +found

    @cached_property
    def reopened(self) -> Counter[str]:
        """How often each workflow was retried or resolved, also with those that it is a step of."""
        own = Counter(row.subject for row in self.history.audits if row.verb in REOPENING)
        found: Counter[str] = Counter()
        for row in self.history.workflows:
            found[row.id] = sum(own[id] for id in self.above(row.id))
        return found

    def above(self, workflow_id: str) -> Iterator[str]:
        """A workflow, and those that it is a step of, at whatever distance."""
        id: str | None = workflow_id
        while id in self._parents:
            yield id
            id = self._parents[id]

    @cached_property
    def _parents(self) -> dict[str, str | None]:
        """The workflow that each is a step of; None where there is none."""
        workflow_of = {step.id: step.workflow_id for step in self.history.steps}
        rows = self.history.workflows
        return {row.id: workflow_of.get(row.parent_step_id or 0) for row in rows}

    def database_back(self, at: float, *, within: float = 0.0) -> float:
        """From when on the leases that ran out at that moment may be taken over.

        Not before one lease after an outage that had begun by then: nobody could renew. An outage
        that began before that was over starts it anew. Where something had to happen `within` so
        many seconds, an outage that began before they were over kept it from happening too.
        """
        outages = [fault for fault in self.history.faults if not fault.workers]
        since, before = at, None
        while since != before:
            before = since
            begun = [fault for fault in outages if fault.began_at <= before + within]
            since = max([at, *(fault.healed_at + self.bounds.lease for fault in begun)])
        return since

    def kept(self, since: float, until: float) -> float:
        """How many seconds of that span the machine kept from whoever had something to do."""
        return kept(self.history.stalls, since, until)

    @cached_property
    def hindrances(self) -> list[Stall]:
        """Stalls of the machine, and waits for SQLite's write lock, of workers that write."""
        stalls, waits = self.history.stalls, self.history.lock_waits
        return [*stalls, *beside(stalls, waits)]

    def kept_from_workers(self, since: float, until: float) -> float:
        """How many seconds of that span it kept from every worker."""
        return max(self.kept(since, until), kept_from_workers(self.history.stalls, since, until))


def is_finished(status: str) -> bool:
    """Whether a task of that status has ended."""
    return status in FINISHED


def _by_attempt(leases: Iterable[LeaseRow]) -> list[LeaseRow]:
    return sorted(leases, key=lambda lease: (lease.attempt, lease.id))


def _by(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    found: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return dict(found)
