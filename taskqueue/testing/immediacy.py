"""Eager mode: tasks run as soon as they are enqueued, as if by an idle worker."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Literal, get_args

from django.db.transaction import on_commit

from taskqueue import signals
from taskqueue.engine.connections import database_alias
from taskqueue.results import TaskResult
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing.choices import Choice, Errors, check_among
from taskqueue.testing.lasting import Lasting, begun
from taskqueue.testing.running import new_duties, run_all
from taskqueue.worker.bodies.context import _current
from taskqueue.worker.duties import Duties

When = Literal["enqueue", "commit"]

_is_running: ContextVar[bool] = ContextVar("taskqueue_eager", default=False)


class eager(Lasting):  # noqa: N801  (read as an adverb: `with eager():`)
    """Run tasks as they are enqueued, in the caller's thread and transaction.

    `errors="record"` keeps exceptions of bodies in their results, `"raise"` raises them from the
    enqueue. `when="commit"` waits for the COMMIT of the transaction that enqueues. All options
    apply: a task with a later `run_after` stays scheduled, and retries follow without their
    backoff. Tasks that a body enqueues run after that body. Row and result are real, and the result
    that the enqueue returns shows the outcome. A workflow runs to its end, or until its next step
    is not due yet. If eager modes are nested, the innermost runs the tasks. For `with` and `async
    with`.
    """

    def __init__(
        self, *, errors: Errors = "record", when: When = "enqueue", limit: int = 1000
    ) -> None:
        check_among("when", when, get_args(When))
        self._choice = Choice(errors=errors, backoff="skip", limit=limit)
        self._when = when
        self._duties: Duties | None = None

    def _begin(self) -> None:
        signals.task_enqueued.connect(_on_enqueued, weak=False, dispatch_uid=eager)
        signals.workflow_enqueued.connect(_on_workflow, weak=False, dispatch_uid=eager)

    def _end(self) -> None:
        """Let an outer eager mode apply again; without one, tasks wait for a worker."""
        if _innermost() is None:
            signals.task_enqueued.disconnect(dispatch_uid=eager)
            signals.workflow_enqueued.disconnect(dispatch_uid=eager)

    def run_after(self, result: TaskResult[Any] | WorkflowRun) -> None:
        """Run the due tasks, including the enqueued one: at once, or after the commit."""
        if self._when == "enqueue":
            self._run(result)
        else:
            on_commit(lambda: self._run(result), using=database_alias())

    def _run(self, result: TaskResult[Any] | WorkflowRun) -> None:
        token = _is_running.set(True)
        if self._duties is None:
            # Rare duties, such as pruning, need not run at every enqueue.
            self._duties = new_duties()
        try:
            run_all(self._choice, duties=self._duties)
        finally:
            _is_running.reset(token)
        result.refresh()


def _on_enqueued(*, task_result: TaskResult[Any], **named: Any) -> None:
    _run_after(task_result)


def _on_workflow(*, run: WorkflowRun, **named: Any) -> None:
    _run_after(run)


def _run_after(result: TaskResult[Any] | WorkflowRun) -> None:
    # Tasks that a body enqueues wait until it has ended: its runner then looks for more.
    mode = _innermost()
    if mode is not None and _current.get() is None and not _is_running.get():
        mode.run_after(result)


def _innermost() -> eager | None:
    return next((mode for mode in reversed(begun) if isinstance(mode, eager)), None)
