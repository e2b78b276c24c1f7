"""The handle for a workflow: its rows as last read, and its verbs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, ParamSpec, Self
from uuid import UUID

from asgiref.sync import sync_to_async

from taskqueue.core.workflow_states import FINAL_WORKFLOWS, WorkflowStatus
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.declarations.workflows.drawing import Picture
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.events.following import follow
from taskqueue.engine.events.reading import FeedEvent
from taskqueue.engine.workflows import verbs
from taskqueue.engine.workflows.pictures import picture_of_workflow
from taskqueue.engine.workflows.results import Results
from taskqueue.exceptions import Duration, InvalidWorkflow, WorkflowDoesNotExist
from taskqueue.models import Step, Workflow
from taskqueue.results.handle import growing_pauses, still_waiting
from taskqueue.results.step_view import StepView

P = ParamSpec("P")


class WorkflowRun:
    """A handle on one workflow. Its attributes are as last read; `refresh()` reads them again.

    Verbs take `by`, which may be a user object, and `reason` for the audit.
    """

    def __init__(self, row: Workflow, *, created: bool = False) -> None:
        self._row = row
        # Whether this enqueue wrote it; if not, it held the unique key.
        self.created = created
        self._forget()

    def _forget(self) -> None:
        """Have everything that is not in the row read anew."""
        self._steps: dict[str, StepView] | None = None
        self._errors: dict[str, dict[str, Any]] | None = None
        self._unreadable: InvalidWorkflow | None = None
        self._results = Results(database_alias(), self.id)

    def __repr__(self) -> str:
        return f"<WorkflowRun {self.name} {self.id} {self.status}>"

    @property
    def id(self) -> UUID:
        """The id."""
        return self._row.id

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return self._row.name

    @property
    def status(self) -> WorkflowStatus:
        """The status."""
        return WorkflowStatus(self._row.status)

    @property
    def is_finished(self) -> bool:
        """Whether its status is final."""
        return self.status in FINAL_WORKFLOWS

    @property
    def context(self) -> dict[str, Any]:
        """The values that its steps have set."""
        return dict(self._row.context)

    @property
    def error(self) -> dict[str, Any] | None:
        """Why it failed: `error_class`, `message` and `task_id`; None if it did not."""
        error = self._row.error
        return None if error is None else dict(error)

    @property
    def steps(self) -> Mapping[str, StepView]:
        """The steps by name, in the order in which they were built."""
        if self._steps is None:
            rows = Step.objects.using(database_alias()).filter(workflow_id=self.id)
            self._steps = {row.name: StepView.of(row) for row in rows.order_by("id")}
        return self._steps

    def step(self, name: str) -> StepView:
        """Return one step. Raises KeyError."""
        return self.steps[name]

    @property
    def progress(self) -> tuple[int, int]:
        """How many of the members that are known now have ended, and how many there are."""
        known = [step for step in self.steps.values() if step.members is not None]
        return sum(step.ended for step in known), sum(step.members or 0 for step in known)

    @property
    def return_value(self) -> Any:
        """The result of the last step, or a dict by name if there are several.

        Raises `InvalidWorkflow` if it is a list that is too large to be read as a whole.
        """
        if self._unreadable is not None:
            raise self._unreadable
        return self._results.return_value()

    def return_value_of(self, step: str) -> Any:
        """Return the result of one step, a list for a map; None if it has not succeeded.

        Raises KeyError for an unknown step, and `InvalidWorkflow` as `return_value` does.
        """
        return self._results.result_of(self.step(step).name)

    @property
    def errors(self) -> dict[str, dict[str, Any]]:
        """The errors of failed steps, by their names."""
        if self._errors is None:
            self._errors = self._results.errors_of_steps()
        return dict(self._errors)

    def errors_of(self, step: str) -> dict[int, dict[str, Any]]:
        """Return the errors of a step's members by place, even of those that are allowed to fail.

        Raises KeyError for an unknown step.
        """
        return self._results.errors_of(self.step(step).name)

    def graph(self) -> Picture:
        """Return the steps in layers, with their dependencies and their progress.

        `mermaid` and `standalone_svg` of `taskqueue.workflows` draw it.
        """
        return picture_of_workflow(self._row)

    def refresh(self) -> None:
        """Read it again. Raises `WorkflowDoesNotExist`."""
        self._row = row_of(self.id)
        self._forget()

    def wait(self, timeout: Duration | None = None) -> Self:
        """Wait until the workflow has finished, then read it again.

        Raises TimeoutError after `timeout` seconds. Do not wait within the transaction that
        enqueued it: workers see it only once that is committed.
        """
        for pause in growing_pauses(timeout):
            self.refresh()
            if self.is_finished:
                return self
            time.sleep(pause)
        raise still_waiting(f"Workflow {self.id} is {self.status}", timeout)

    async def events(self, *, after: int | None = None) -> AsyncIterator[FeedEvent]:
        """Yield the events of the workflow and its tasks as they come, until it has ended.

        They start after the event with the number `after`, or from now on, as those of a task do.
        """
        wanted = EventFilter.of(workflow=self.id)

        async def is_over() -> bool:
            await self.arefresh()
            return self.is_finished

        async for page in follow(wanted, after=after, is_over=is_over, look_every=1.0):
            for event in page.events:
                yield event

    def cancel(self, reason: str = "", *, by: object = "") -> None:
        """Release nothing more; cancel what waits, and ask what runs to stop."""
        verbs.cancel(project_connection(), self.id, by=by, reason=reason)
        self.refresh()

    def pause(self, reason: str = "", *, by: object = "") -> None:
        """Release nothing until `resume`; what runs goes on, and its ends are counted."""
        verbs.pause(project_connection(), self.id, by=by, reason=reason)
        self.refresh()

    def resume(self, reason: str = "", *, by: object = "") -> None:
        """Release what a pause kept back."""
        verbs.resume(project_connection(), self.id, by=by, reason=reason)
        self.refresh()

    def retry(self, from_step: str | None = None, reason: str = "", *, by: object = "") -> None:
        """Run failed and cancelled steps again in place; steps that succeeded are kept.

        With `from_step`, that step and all later ones run again too. Raises `TransitionRefused` if
        there is nothing to retry, if a step that would run again is running, and for a child.
        """
        verbs.retry(project_connection(), self.id, by=by, reason=reason, from_step=from_step)
        self.refresh()

    def resolve(self, step: str, value: Any, reason: str = "", *, by: object = "") -> None:
        """Count a failed step as succeeded, with this result; steps that it cancelled wait again.

        Raises `TransitionRefused` if the step has not failed.
        """
        connection = project_connection()
        verbs.resolve(connection, self.id, step=step, value=value, by=by, reason=reason)
        self.refresh()

    async def arefresh(self) -> None:
        """Async version of `refresh`: all attributes may then be read in async code too."""
        await self._read_after(self.refresh)

    async def async_wait(self, timeout: Duration | None = None) -> Self:
        """Async version of `wait`."""
        import asyncio

        for pause in growing_pauses(timeout):
            await self.arefresh()
            if self.is_finished:
                return self
            await asyncio.sleep(pause)
        state = f"Workflow {self.id} is {self.status}"
        raise await sync_to_async(still_waiting, thread_sensitive=True)(state, timeout)

    async def acancel(self, reason: str = "", *, by: object = "") -> None:
        """Async version of `cancel`."""
        await self._read_after(self.cancel, reason, by=by)

    async def apause(self, reason: str = "", *, by: object = "") -> None:
        """Async version of `pause`."""
        await self._read_after(self.pause, reason, by=by)

    async def aresume(self, reason: str = "", *, by: object = "") -> None:
        """Async version of `resume`."""
        await self._read_after(self.resume, reason, by=by)

    async def aretry(
        self, from_step: str | None = None, reason: str = "", *, by: object = ""
    ) -> None:
        """Async version of `retry`."""
        await self._read_after(self.retry, from_step, reason, by=by)

    async def aresolve(self, step: str, value: Any, reason: str = "", *, by: object = "") -> None:
        """Async version of `resolve`."""
        await self._read_after(self.resolve, step, value, reason, by=by)

    async def areturn_value_of(self, step: str) -> Any:
        """Async version of `return_value_of`."""
        return await sync_to_async(self.return_value_of, thread_sensitive=True)(step)

    async def aerrors_of(self, step: str) -> dict[int, dict[str, Any]]:
        """Async version of `errors_of`."""
        return await sync_to_async(self.errors_of, thread_sensitive=True)(step)

    async def agraph(self) -> Picture:
        """Async version of `graph`."""
        return await sync_to_async(self.graph, thread_sensitive=True)()

    async def _read_after(self, verb: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a verb, and read all attributes of the handle."""

        def call() -> None:
            verb(*args, **kwargs)
            self.steps  # noqa: B018
            self.errors  # noqa: B018
            try:
                self.return_value  # noqa: B018
            except InvalidWorkflow as error:  # The verb has been done; this is for who reads it.
                self._unreadable = error

        await sync_to_async(call, thread_sensitive=True)()


def get_workflow(workflow_id: UUID | str) -> WorkflowRun:
    """Return the handle on a workflow by its id. Raises `WorkflowDoesNotExist`."""
    return WorkflowRun(row_of(workflow_id))


def row_of(workflow_id: UUID | str) -> Workflow:
    """Return the row. Raises `WorkflowDoesNotExist`."""
    try:
        return Workflow.objects.using(database_alias()).get(id=UUID(str(workflow_id)))
    except (Workflow.DoesNotExist, ValueError):
        raise WorkflowDoesNotExist(f"There is no workflow {workflow_id}.") from None
