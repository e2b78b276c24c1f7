"""The context of a running attempt."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taskqueue.declarations.context import AttemptContext
from taskqueue.exceptions import TaskQueueError

if TYPE_CHECKING:
    from taskqueue.results import TaskResult
    from taskqueue.tracing import AttemptSpan
    from taskqueue.worker.step_facts import StepFacts
    from taskqueue.worker.workflow_context import WorkflowContext

_current: ContextVar[Context | None] = ContextVar("taskqueue_current", default=None)


class Context(AttemptContext):
    """One attempt, as its body sees it."""

    @cached_property
    def task_result(self) -> TaskResult[Any]:
        """The task as the database knows it, read once."""
        from taskqueue.results import get_result

        return get_result(self.task_id)

    # Its span, while attempts are traced.
    _span: AttemptSpan | None = None
    # Where it stands in a workflow, if spans or log records tell of that.
    _step: StepFacts | None = None

    # Made when the body first asks for it.
    _workflow: WorkflowContext | None = None

    @property
    def workflow(self) -> WorkflowContext:
        """The workflow that the task belongs to. Raises `TaskQueueError` if there is none."""
        if self._workflow is None:
            if not self._is_step:
                raise TaskQueueError(
                    "This task belongs to no workflow. Enqueue it as one, with .s(...).enqueue(), "
                    "to use current().workflow."
                )
            # Few tasks need it.
            from taskqueue.worker.workflow_context import WorkflowContext

            self._workflow = WorkflowContext(self.task_id)
        return self._workflow


class StepReading:
    """Whether attempts of steps read where they stand, for log records that tell of it."""

    is_wanted = False


def current() -> Context:
    """Return the context of the running body. Raises `TaskQueueError` outside of one."""
    context = _current.get()
    if context is None:
        raise TaskQueueError("current() is for the bodies of tasks that a worker runs.")
    return context
