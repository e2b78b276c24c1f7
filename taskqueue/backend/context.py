"""The context of tasks of Django's framework."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from taskqueue.backend.framework import AnyContext, AnyResult
from taskqueue.declarations.context import AttemptContext


class QueueContext(AnyContext):
    """Django's `TaskContext` with the methods of `taskqueue.Context`."""

    def __init__(self, context: AttemptContext, result: Callable[[], AnyResult]) -> None:
        object.__setattr__(self, "_context", context)
        object.__setattr__(self, "_result", result)

    _context: AttemptContext
    _result: Callable[[], AnyResult]

    def __repr__(self) -> str:
        return f"<context of attempt {self.attempt} of {self.task_id}>"

    @property
    def task_result(self) -> AnyResult:  # type: ignore[override]
        """The result of the running task; fields of the database are read when needed."""
        return self._result()

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._context.attempt

    @property
    def task_id(self) -> str:
        """The id of the task, as text."""
        return self._context.task_id

    @property
    def worker_name(self) -> str:
        """The name of the worker that runs it."""
        return self._context.worker_name

    @property
    def metadata(self) -> dict[str, Any]:
        """The JSON object that travels with the task."""
        return self._context.metadata

    @property
    def schedule(self) -> str:
        """The name of the schedule that made the task; empty if there is none."""
        return self._context.schedule

    @property
    def nominal_at(self) -> datetime | None:
        """The time of the schedule that this run stands for, in UTC."""
        return self._context.nominal_at

    @property
    def stop_requested(self) -> bool:
        """Return whether somebody asked this attempt to stop, or its time is over."""
        return self._context.stop_requested

    def check(self) -> None:
        """Raise `taskqueue.Stopped` if this attempt was asked to stop."""
        self._context.check()

    def progress(self, done: float, total: float = 100, message: str = "") -> None:
        """Report that `done` of `total` is done. See `taskqueue.Context.progress`."""
        self._context.progress(done, total, message)

    def log(self, message: object, level: int | str = logging.INFO) -> None:
        """Add a log line to this attempt. See `taskqueue.Context.log`."""
        self._context.log(message, level)
