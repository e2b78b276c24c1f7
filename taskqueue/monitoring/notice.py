"""One thing that somebody ought to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WARNING, ERROR = "warning", "error"
Code = Literal[
    "no_worker", "unserved_queue", "paused_with_waiting", "stalled", "failing", "absent_workers",
    "too_few_workers", "parked", "schedule_trouble", "schedule_paused_itself", "lost_worker",
    "worker_trouble", "wedged", "lost_holds",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A condition that was found; each face makes a sentence of the code."""

    code: Code
    level: str
    """`warning` or `error`."""
    subject: str = ""
    """The queue, worker, schedule, task or name of tasks."""
    count: int | None = None
    """The number of tasks concerned; of attempts for `failing`, of runs for a schedule."""
    is_capped: bool = False
    """Whether there are more than `count`."""
    total: int | None = None
    """Attempts that ended, for `failing`; workers that a task wants, for `too_few_workers`."""
    example: str = ""
    """The id of the task that waits longest."""
    seconds: float | None = None
    """For how long that task waits."""
    detail: str = ""
    """The trouble of a worker or schedule; names of workers; the number of missing workers."""
