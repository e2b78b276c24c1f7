"""`@workflow`: turn a function that builds steps into a workflow that can be enqueued."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, overload

from taskqueue.declarations.workflows.builder import Builder
from taskqueue.declarations.workflows.canvas import Canvas, StepCall
from taskqueue.declarations.workflows.drawing import mermaid, standalone_svg
from taskqueue.declarations.workflows.references import Condition, Reference, StepHandle
from taskqueue.declarations.workflows.signatures import chain, chord, fan_out, group
from taskqueue.declarations.workflows.signing import FanOut
from taskqueue.declarations.workflows.workflow import (
    BaseWorkflow,
    check_workflow,
    checked_declaration,
    workflows,
)

if TYPE_CHECKING:
    from taskqueue.results.workflows import WorkflowRun

__all__ = [
    "Builder",
    "Canvas",
    "Condition",
    "FanOut",
    "Reference",
    "StepCall",
    "StepHandle",
    "Workflow",
    "chain",
    "chord",
    "fan_out",
    "group",
    "mermaid",
    "standalone_svg",
    "workflow",
]

Body = Callable[..., Any]


class Workflow(BaseWorkflow):
    """A function under `@workflow`, with its options. Immutable: `.using()` returns another."""

    def enqueue(self, /, *args: Any, **kwargs: Any) -> WorkflowRun:
        """Build the graph, and write it in the caller's transaction.

        Raises as `build` does, before anything is written, and `DuplicateWorkflow` under
        `on_duplicate="raise"`.
        """
        return cast("WorkflowRun", self.s(*args, **kwargs).enqueue())

    async def aenqueue(self, /, *args: Any, **kwargs: Any) -> WorkflowRun:
        """Async version of `enqueue`."""
        return cast("WorkflowRun", await self.s(*args, **kwargs).aenqueue())


def define(body: Body, options: dict[str, Any]) -> Workflow:
    """Register and return a workflow. Raises `InvalidWorkflow` and `InvalidTask`."""
    made = Workflow(body, checked_declaration(body, options))
    check_workflow(made)
    workflows.register(made)
    return made


@overload
def workflow(function: Body, /) -> Workflow: ...
@overload
def workflow(**options: Any) -> Callable[[Body], Workflow]: ...
def workflow(function: Any = None, /, **options: Any) -> Any:
    """Turn a function at the top of a module into a workflow.

    Its first argument is the builder; the others are those of an enqueue. Options: `name`,
    `version`, `deadline`, `retention`, `fail_fast`, `unique_key`, `on_duplicate`, `sensitive`,
    `api` and `schedule`. Raises `InvalidTask` for an invalid option.
    """
    if function is not None:
        return define(function, options)
    return lambda body: define(body, options)
