"""An order: the description of an attempt that a child gets from its parent."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple

from taskqueue.declarations import snapshots
from taskqueue.worker.bodies.context import Context
from taskqueue.worker.bodies.reporting import Reports


class Order(NamedTuple):
    """A frame's description of an attempt, for the child that runs it."""

    lease_id: int
    task_id: str
    name: str
    attempt: int
    args: str
    kwargs: str
    options: str
    metadata: str
    failures: int
    max_attempts: int
    deadline_at: float | None  # By the monotonic clock, which all processes of a host share.
    queue_name: str
    ready_at: float | None  # Since when the task was ready, by the same clock.
    crashes: int = 0  # Earlier attempts that were lost.

    @property
    def stays(self) -> bool:
        """False: a child records only successes itself."""
        return False

    @property
    def is_step(self) -> bool:
        """Whether it belongs to a step of a workflow."""
        return bool(self.options) and snapshots.STEP in snapshots.loaded(self.options)

    def context(self, worker_name: str, reports: Reports, make: type[Context] = Context) -> Context:
        """Return the context for its body."""
        snapshot = snapshots.loaded(self.options) if self.options else {}
        snapshot = {} if snapshots.misfit(snapshot) else snapshot
        nominal_at = snapshot.get("nominal_at")
        return make(
            task_id=self.task_id,
            _lease_id=self.lease_id,
            attempt=self.attempt,
            worker_name=worker_name,
            metadata=json.loads(self.metadata) if self.metadata else {},
            schedule=snapshot.get("schedule", ""),
            nominal_at=nominal_at and datetime.fromisoformat(nominal_at),
            _is_step=snapshots.STEP in snapshot,
            _task_name=self.name,
            _queue_name=self.queue_name,
            _report_progress=reports.report_progress,
            _report_line=reports.report_line,
        )
