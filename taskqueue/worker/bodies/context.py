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
    """One attempt, from the view of its body."""

    @cached_property
    def task_result(self) -> TaskResult[Any]:
        """The task as stored in the database, read once."""
        from taskqueue.results import get_result

        return get_result(self.task_id)

    @property
    def checkpoint(self) -> Any:
        """The state that an attempt of this task stored last; None if there is none.

        It is read from the database each time. An `async def` body awaits `acheckpoint()`.
        """
        # Imported here because it loads the models; so do the other late imports.
        from taskqueue.engine.checkpoints import latest_checkpoint
        from taskqueue.engine.connections import project_connection

        return latest_checkpoint(project_connection(), lease_id=self._lease_id)

    async def acheckpoint(self) -> Any:
        """Async version of `checkpoint`."""
        return await sync_to_async(lambda: self.checkpoint)()

    def save_checkpoint(self, state: Any) -> None:
        """Store a JSON value for the next attempt, in the body's current transaction.

        None lets the next attempt start from the beginning. Raises `InvalidArguments` or
        `UnsupportedType` if JSON cannot keep the value unchanged or it is larger than
        MAX_CHECKPOINT, and `LeaseEnded` if another worker may hold the task by now.
        """
        from taskqueue.engine.checkpoints import save_checkpoint
        from taskqueue.engine.connections import project_connection

        save_checkpoint(project_connection(), state, lease_id=self._lease_id)

    async def asave_checkpoint(self, state: Any) -> None:
        """Async version of `save_checkpoint`."""
        await sync_to_async(self.save_checkpoint)(state)

    def write_result(self, part: Any) -> None:
        """Add a JSON value to the result as a part; it can be read from now on as `result.parts`.

        If the body has a transaction, the part is written in it. Raises `InvalidArguments` or
        `UnsupportedType` if JSON cannot keep the value unchanged or the attempt's parts together
        exceed MAX_RESULT, and `LeaseEnded` if another worker may hold the task by now.
        """
        from taskqueue.engine.connections import project_connection
        from taskqueue.engine.result_parts import write_part

        write_part(project_connection(), part, lease_id=self._lease_id)

    async def awrite_result(self, part: Any) -> None:
        """Async version of `write_result`."""
        await sync_to_async(self.write_result)(part)

    def keep_result(self) -> int:
        """Keep the parts of the last attempt that wrote any; return their number.

        Without this call, an attempt starts without parts. A success discards parts that were
        written before it. Call it before the first part; after it, this raises `TaskQueueError`.
        Also raises `LeaseEnded`.
        """
        from taskqueue.engine.connections import project_connection
        from taskqueue.engine.result_parts import keep_parts

        return keep_parts(project_connection(), lease_id=self._lease_id)

    async def akeep_result(self) -> int:
        """Async version of `keep_result`."""
        return await sync_to_async(self.keep_result)()

    # Its span, if attempts are traced.
    _span: AttemptSpan | None = None
    # Its place in a workflow, if spans or log records show that.
    _step: StepFacts | None = None

    # Created when the body first asks for it.
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
            # Imported here, because few tasks need it.
            from taskqueue.worker.bodies.workflow_context import WorkflowContext

            self._workflow = WorkflowContext(self.task_id)
        return self._workflow


class StepReading:
    """Whether attempts of steps read their place in the workflow, for log records that show it."""

    is_wanted = False


def current() -> Context:
    """Return the context of the running body. Raises `TaskQueueError` outside of one."""
    context = _current.get()
    if context is None:
        raise TaskQueueError("current() is for the bodies of tasks that a worker runs.")
    return context
