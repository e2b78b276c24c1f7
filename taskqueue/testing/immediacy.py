"""Eager mode: what is enqueued runs at once, as if an idle worker of endless speed stood by."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Literal

from django.db.transaction import on_commit

from taskqueue import signals
from taskqueue.engine.connections import database_alias
from taskqueue.results import TaskResult
from taskqueue.testing.choices import Choice, Errors, check_in
from taskqueue.testing.running import new_duties, run_all
from taskqueue.worker.context import _current
from taskqueue.worker.duties import Duties

When = Literal["enqueue", "commit"]

_is_running: ContextVar[bool] = ContextVar("taskqueue_eager", default=False)
_begun: list[eager] = []
"""Those that have not ended, the innermost last: that one alone serves."""


def begun() -> int:
    """How many eager modes have begun and not ended."""
    return len(_begun)


def end_all_but(number: int) -> None:
    """End what a test has begun and left, beyond those that there were before it."""
    while len(_begun) > number:
        _begun[-1].stop()


class eager:  # noqa: N801  (read as an adverb: `with eager():`)
    """Run tasks as they are enqueued, in the enqueuer's thread and transaction.

    `errors="record"` keeps what bodies raise in their results, `"raise"` raises it from the
    enqueue. `when="commit"` waits for the COMMIT of the transaction that enqueues. Every option is
    heeded: a task that is to run later stays scheduled, retries go to their end without their
    backoff. What a body enqueues runs after that body. The row and the result are real, and the
    handle that the enqueue gives back tells what the task came to. Of several within each other,
    the innermost serves alone. For `with` and `async with`.
    """

    def __init__(
        self, *, errors: Errors = "record", when: When = "enqueue", limit: int = 1000
    ) -> None:
        check_in("when", when, When)
        self._choice = Choice(errors=errors, backoff="skip", limit=limit)
        self._when = when
        self._duties: Duties | None = None

    def start(self) -> None:
        """Begin, where `with` does not fit; `stop` ends it."""
        _begun.append(self)
        signals.task_enqueued.connect(_on_enqueued, weak=False, dispatch_uid=eager)

    def stop(self) -> None:
        """From here on, what was before is again: an outer eager mode, or tasks that wait."""
        if self in _begun:
            # The latest of its starts.
            del _begun[len(_begun) - 1 - _begun[::-1].index(self)]
        if not _begun:
            signals.task_enqueued.disconnect(dispatch_uid=eager)

    def __enter__(self) -> eager:
        self.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.stop()

    async def __aenter__(self) -> eager:
        self.start()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.stop()

    def run_after(self, result: TaskResult[Any]) -> None:
        """Run what is due, the enqueued task among it: at once, or after the commit."""
        if self._when == "enqueue":
            self._run(result)
        else:
            on_commit(lambda: self._run(result), using=database_alias())

    def _run(self, result: TaskResult[Any]) -> None:
        token = _is_running.set(True)
        if self._duties is None:
            # The rarer ones, such as pruning, need not be served at every enqueue.
            self._duties = new_duties()
        try:
            run_all(self._choice, duties=self._duties)
        finally:
            _is_running.reset(token)
        result.refresh()


def _on_enqueued(*, task_result: TaskResult[Any], **named: Any) -> None:
    # A body's own tasks wait for it to end: whoever runs it looks for more then.
    if _begun and _current.get() is None and not _is_running.get():
        _begun[-1].run_after(task_result)
