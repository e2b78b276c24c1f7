"""The context of a running attempt."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from taskqueue.declarations.context import AttemptContext
from taskqueue.exceptions import TaskQueueError

if TYPE_CHECKING:
    from taskqueue.results import TaskResult
    from taskqueue.tracing.spans import AttemptSpan
    from taskqueue.worker.bodies.step_facts import StepFacts
    from taskqueue.worker.bodies.workflow_context import WorkflowContext

_current: ContextVar[Context | None] = ContextVar("taskqueue_current", default=None)


class Context(AttemptContext):
    """One attempt, as its body sees it."""

    @cached_property
    def task_result(self) -> TaskResult[Any]:
        """The task as stored in the database, read once."""
        from taskqueue.results import get_result

        return get_result(self.task_id)

    @property
    def checkpoint(self) -> Any:
        """The state that an attempt of this task stored last; None if there is none.

        It is read anew each time. An `async def` body awaits `acheckpoint()`.
        """
        # It loads the models, as the others that are imported where they are needed.
        from taskqueue.engine.checkpoints import latest_checkpoint
        from taskqueue.engine.connections import project_connection

        return latest_checkpoint(project_connection(), lease_id=self._lease_id)

    async def acheckpoint(self) -> Any:
        """Async version of `checkpoint`."""
        return await sync_to_async(lambda: self.checkpoint)()

    def save_checkpoint(self, state: Any) -> None:
        """Store a JSON value for the next attempt, in the transaction that the body is in.

        None lets the next attempt begin anew. Raises `InvalidArguments` or `UnsupportedType` for
        what JSON cannot keep as it is or is larger than MAX_CHECKPOINT, and `LeaseEnded` where
        somebody else may hold the task by now.
        """
        from taskqueue.engine.checkpoints import save_checkpoint
        from taskqueue.engine.connections import project_connection

        save_checkpoint(project_connection(), state, lease_id=self._lease_id)

    async def asave_checkpoint(self, state: Any) -> None:
        """Async version of `save_checkpoint`."""
        await sync_to_async(self.save_checkpoint)(state)

    def write_result(self, part: Any) -> None:
        """Add a part to the result, a JSON value; it can be read from now on, as `result.parts`.

        In a transaction of the body it is part of that. Raises `InvalidArguments` or
        `UnsupportedType` for what JSON cannot keep as it is, or where the attempt's parts are
        larger than MAX_RESULT together, and `LeaseEnded` where somebody else may hold the task.
        """
        from taskqueue.engine.connections import project_connection
        from taskqueue.engine.result_parts import write_part

        write_part(project_connection(), part, lease_id=self._lease_id)

    async def awrite_result(self, part: Any) -> None:
        """Async version of `write_result`."""
        await sync_to_async(self.write_result)(part)

    def keep_result(self) -> int:
        """Keep the parts of the last attempt that wrote any; return their number.

        Without it, an attempt begins without parts. A success ends what was written before it.
        Call it before the first part; raises `TaskQueueError` after it, and `LeaseEnded`.
        """
        from taskqueue.engine.connections import project_connection
        from taskqueue.engine.result_parts import keep_parts

        return keep_parts(project_connection(), lease_id=self._lease_id)

    async def akeep_result(self) -> int:
        """Async version of `keep_result`."""
        return await sync_to_async(self.keep_result)()

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
            from taskqueue.worker.bodies.workflow_context import WorkflowContext

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
