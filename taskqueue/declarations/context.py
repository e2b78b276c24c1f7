"""The context of a running body: facts about its attempt, progress and log lines."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from taskqueue.core.log_levels import level_number
from taskqueue.declarations.payload import encode
from taskqueue.exceptions import Stopped

LARGEST_DETAIL = 4096


@dataclass(kw_only=True, eq=False, repr=False)
class AttemptContext:
    """The current attempt, for its body."""

    # The id of the task, as text.
    task_id: str
    # The number of this attempt, from 1.
    attempt: int
    worker_name: str
    metadata: dict[str, Any]
    # The name of the schedule that made the task; empty if there is none.
    schedule: str = ""
    # The nominal time of the scheduled run, in UTC.
    nominal_at: datetime | None = None
    # Whether the task belongs to a step of a workflow.
    _is_step: bool = False
    _task_name: str = ""
    _queue_name: str = ""
    _lease_id: int
    _report_progress: Callable[[int, float, str, str | None], None]
    _report_line: Callable[[int, int, str, str], None]
    _stop_reason: str | None = None
    _is_stopped: bool = False
    # The error that is raised in a body that has exceeded a limit.
    _limit_error: BaseException | None = None

    def progress(
        self, done: float, total: float = 100, message: str = "", *, detail: Any = None
    ) -> None:
        """Report that `done` of `total` is done; shown as 0 to 100 percent. Never blocks.

        `detail` is a JSON value of up to 4 KiB, which is shown with the message. Raises ValueError
        if the total is not positive, and `InvalidArguments` or `UnsupportedType` if the detail is
        larger or cannot be represented as JSON.
        """
        if not total > 0:
            raise ValueError(f"total must be more than 0, not {total!r}.")
        percent = min(100.0, max(0.0, 100.0 * done / total))
        text = None if detail is None else encode(detail, limit=LARGEST_DETAIL, what="detail")
        self._report_progress(self._lease_id, percent, str(message), text)

    def log(self, message: object, level: int | str = logging.INFO) -> None:
        """Add a log line to this attempt. Never blocks.

        `level` is a level of `logging`, as a number or a name. Raises ValueError for another name.
        """
        self._report_line(self._lease_id, level_number(level), "", str(message))

    @property
    def stop_requested(self) -> bool:
        """Return whether this attempt was asked to stop, or has exceeded its time."""
        return self._stop_reason is not None

    def check(self) -> None:
        """Raise `Stopped` if this attempt was asked to stop, or the error of a limit it exceeded.

        Such errors are `TaskTimeout`, `DeadlineExceeded` and `MemoryExceeded`.
        """
        if self._limit_error is not None and not self._is_stopped:
            raise self._limit_error
        if self._stop_reason is not None:
            raise Stopped(self._stop_reason)

    def _request_stop(self, reason: str) -> None:
        """Note a request to stop: the task is cancelled, whatever the attempt does now."""
        self._stop_reason = reason
        self._is_stopped = True

    def _announce_limit(self, error: BaseException) -> None:
        """Note that a limit of it is passed; the attempt fails with this error."""
        self._limit_error = error
        if not self._is_stopped:
            self._stop_reason = str(error)
