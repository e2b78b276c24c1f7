"""Histories made by hand, for the tests of the checker: what a correct queue would have left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.chaos.checker import check
from tests.chaos.history import (
    AuditRow,
    Bounds,
    Change,
    EffectRow,
    Enqueue,
    Fault,
    History,
    LeaseRow,
    Line,
    Sample,
    TaskRow,
    Term,
)

LEASE = 6.0
AFTER = {
    "succeeded": "succeeded",
    "failed": "retrying",
    "lost": "retrying",
    "stopped": "cancelled",
    "returned": "ready",
}
"""What becomes of a task with one worker when its lease ends so, unless it is told otherwise."""
FINISHED = ("succeeded", "failed", "cancelled")


KEYED: dict[str, Any] = {
    "unique_key": "k", "unique_scope": "work", "holds_unique_key": True, "unique_for": "finished",
}  # fmt: skip


def found(history: History) -> set[int]:
    """The numbers of the invariants that a history breaks."""
    return {violation.invariant for violation in check(history)}


class Story:
    """Tells what happened step by step, a second apart; each step leaves what a queue would."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.enqueues: list[Enqueue] = []
        self.tasks: dict[str, TaskRow] = {}
        self.leases: dict[tuple[str, int], LeaseRow] = {}
        self.effects: list[EffectRow] = []
        self.lines: list[Line] = []
        self.audits: list[AuditRow] = []
        self.changes: list[Change] = []
        self.terms: list[Term] = []
        self.faults: list[Fault] = []
        self.samples: list[Sample] = []
        self.bounds = Bounds(lease=LEASE, stop_grace=1, kill_grace=1, shutdown_timeout=5)

    def history(self, **changed: Any) -> History:
        """Everything that was told."""
        self.now += 1
        history = History(
            enqueues=tuple(self.enqueues),
            tasks=tuple(self.tasks.values()),
            leases=tuple(self.leases.values()),
            effects=tuple(self.effects),
            lines=tuple(self.lines),
            audits=tuple(self.audits),
            changes=tuple(self.changes),
            has_changes=True,
            terms=tuple(self.terms),
            faults=tuple(self.faults),
            samples=tuple(self.samples),
            gathered_at=self.now,
            bounds=self.bounds,
        )
        return replace(history, **changed)

    def enqueue(self, *, is_atomic: bool = False, **columns: Any) -> str:
        """A client asks for a task, and is told its id."""
        self.now += 1
        number = len(self.enqueues) + 1
        task_id = f"task-{number}"
        self.enqueues.append(
            Enqueue(
                sequence=number,
                state="ok",
                is_atomic=is_atomic,
                unique_key=columns.get("unique_key") or "",
                unique_scope=columns.get("unique_scope", ""),
                workers=columns.get("workers", 1),
                task_ids=(task_id,),
            )
        )
        self.tasks[task_id] = NEW_TASK._replace(
            id=task_id, sequence=number, enqueued_at=self.now, run_after=self.now, **columns
        )
        self._change("task", task_id, 0, "", self.tasks[task_id].status, "", expires_at=None)
        return task_id

    def claim(self, task_id: str, worker: str = "ada") -> tuple[str, int]:
        """A worker takes a lease."""
        self.now += 1
        task = self.tasks[task_id]
        attempt = task.attempt + 1
        holds = task.holds_unique_key and task.unique_for != "started"
        self.tasks[task_id] = task._replace(attempt=attempt, holds_unique_key=holds)
        if task.is_shared:
            self._count(task_id, running=1)
        if task.status != "running":
            self.move(task_id, "running")
        self.leases[task_id, attempt] = LeaseRow(
            id=len(self.leases) + 1, task_id=task_id, worker_name=worker, attempt=attempt,
            status="running", claimed_at=self.now, started_at=None, expires_at=self.now + LEASE,
            finished_at=None, is_shared=task.is_shared, stop_requested_at=None, stop_seen_at=None,
            error_class="", error_message="", lease_seconds=LEASE,
        )  # fmt: skip
        self._change("lease", task_id, attempt, "", "running", worker, expires_at=None)
        return task_id, attempt

    def run(self, lease: tuple[str, int]) -> None:
        """Its body leaves a mark in the journal."""
        self.now += 1
        self.lines.append(Line(*lease, pid=1, at=self.now, text="start"))

    def end(
        self, lease: tuple[str, int], status: str, after: str | None = None, error: str = ""
    ) -> None:
        """The lease ends, and with it the task's turn."""
        self.now += 1
        row, task = self.leases[lease], self.tasks[lease[0]]
        self.leases[lease] = row._replace(status=status, finished_at=self.now, error_message=error)
        self._change(
            "lease", row.task_id, row.attempt, "running", status, row.worker_name,
            expires_at=row.expires_at,
        )  # fmt: skip
        self.tasks[row.task_id] = task._replace(
            failures=task.failures + (status == "failed"), crashes=task.crashes + (status == "lost")
        )
        if task.is_shared:
            self._end_shared(row.task_id, status)
        else:
            self.move(row.task_id, after or AFTER[status])

    def lose(self, lease: tuple[str, int]) -> None:
        """It runs out, and another worker takes over."""
        self.now = max(self.now, self.leases[lease].expires_at)
        self.end(lease, "lost", error="The lease ran out: its worker stopped renewing it.")

    def lose_early(self, lease: tuple[str, int], error: str) -> None:
        """It ends as lost before it has run out."""
        self.now += 1
        self.end(lease, "lost", error=error)

    def see_stop(self, lease: tuple[str, int]) -> None:
        """Somebody asks it to stop, and its worker sees that."""
        self.now += 1
        row = self.leases[lease]
        self.leases[lease] = row._replace(stop_requested_at=self.now, stop_seen_at=self.now)

    def move(self, task_id: str, after: str) -> None:
        """The task's status changes."""
        task = self.tasks[task_id]
        finished_at = self.now if after in FINISHED else None
        released = after in FINISHED and task.unique_for == "finished"
        self.tasks[task_id] = self.tasks[task_id]._replace(
            status=after,
            finished_at=finished_at,
            holds_unique_key=task.holds_unique_key and not released,
        )
        self._change("task", task_id, task.attempt, task.status, after, "", expires_at=None)

    def retry_by_hand(self, task_id: str) -> None:
        """Somebody runs it again."""
        self.now += 1
        before = self.tasks[task_id]
        self.audits.append(AuditRow(self.now, "eve", "retry", task_id, "", before.status))
        self.move(task_id, "ready")
        self.tasks[task_id] = self.tasks[task_id]._replace(
            failures=0, crashes=0, attempts_before_retry=before.attempt
        )

    def move_workflow(self, workflow_id: str, before: str, after: str) -> None:
        """The status of a workflow changes."""
        self.now += 1
        self._change("workflow", workflow_id, 0, before, after, "", expires_at=None)

    def retry_workflow(
        self, workflow_id: str, *task_ids: str, before: str, detail: str = ""
    ) -> None:
        """Somebody runs these tasks of a workflow again."""
        self.now += 1
        for task_id in task_ids:
            attempt = self.tasks[task_id].attempt
            self.move(task_id, "blocked")
            self.tasks[task_id] = self.tasks[task_id]._replace(
                failures=0, crashes=0, attempts_before_retry=attempt
            )
        self.audits.append(AuditRow(self.now, "eve", "retry", workflow_id, "", before, detail))

    def prune(self, task_id: str) -> None:
        """Its retention is over."""
        self.now += 1
        task = self.tasks.pop(task_id)
        for lease in [lease for lease in self.leases if lease[0] == task_id]:
            row = self.leases.pop(lease)
            self._change(
                "lease", task_id, row.attempt, row.status, "", row.worker_name,
                expires_at=row.expires_at,
            )  # fmt: skip
        self._change("task", task_id, task.attempt, task.status, "", "", expires_at=None)

    def _end_shared(self, task_id: str, status: str) -> None:
        self._count(task_id, running=-1, successes=status == "succeeded")
        task = self.tasks[task_id]
        if task.successes == task.workers:
            self.move(task_id, "succeeded")

    def _count(self, task_id: str, *, running: int, successes: int = 0) -> None:
        task = self.tasks[task_id]
        self.tasks[task_id] = task._replace(
            running_leases=task.running_leases + running, successes=task.successes + successes
        )

    def _change(
        self, noun: str, task_id: str, attempt: int, before: str, after: str, worker: str,
        *, expires_at: float | None,
    ) -> None:  # fmt: skip
        holds = task_id in self.tasks and self.tasks[task_id].holds_unique_key
        number = len(self.changes) + 1
        self.changes.append(
            Change(
                number, self.now, noun, task_id, attempt, before, after, worker,
                holds_unique_key=holds and noun == "task", expires_at=expires_at,
            )
        )  # fmt: skip


NEW_TASK = TaskRow(
    id="", name="work", queue_name="default", status="ready", sequence=None, attempt=0, failures=0,
    crashes=0, max_attempts=3, max_crashes=3, workers=1, worker_names=None, broadcast=False,
    open_slots=1, running_leases=0, successes=0, unique_key=None, unique_scope="", unique_for="",
    unique_until=None, holds_unique_key=False, retry_of=None, attempts_before_retry=0,
    enqueued_at=0.0, run_after=0.0, ready_at=None, started_at=None, finished_at=None,
    error_class="", error_message="",
)  # fmt: skip
