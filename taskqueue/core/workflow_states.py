"""The statuses of workflows, the kinds and statuses of steps, and when a step follows another."""

from enum import StrEnum


class WorkflowStatus(StrEnum):
    """The status of a workflow; `succeeded`, `failed` and `cancelled` are final."""

    # Its steps run, or wait for others; it may be paused.
    RUNNING = "running"
    # No more steps are released; running tasks were asked to stop.
    STOPPING = "stopping"
    # It has failed or was cancelled, and its succeeded steps are undone.
    COMPENSATING = "compensating"
    # All its steps have ended, and none failed that must not.
    SUCCEEDED = "succeeded"
    # A step failed, or its deadline passed.
    FAILED = "failed"
    # Somebody cancelled it.
    CANCELLED = "cancelled"


class StepKind(StrEnum):
    """The kinds of steps, by what they run."""

    # One task.
    TASK = "task"
    # Many members: tasks of one definition, or unlike calls with limits, including workflows.
    MAP = "map"
    # A child workflow.
    WORKFLOW = "workflow"
    # Nothing: it waits for other steps and gathers their results.
    JOIN = "join"


class StepStatus(StrEnum):
    """The status of a step; `succeeded`, `failed`, `skipped` and `cancelled` are final."""

    # Waits for the steps that it depends on.
    WAITING = "waiting"
    # Released: its task, members or workflow have not all ended.
    RUNNING = "running"
    # All of it succeeded, or as many members as it needs.
    SUCCEEDED = "succeeded"
    # It ended otherwise.
    FAILED = "failed"
    # Its condition was false, or no dependency called for it.
    SKIPPED = "skipped"
    # A dependency failed, or somebody stopped the workflow.
    CANCELLED = "cancelled"


class After(StrEnum):
    """The kind of end of a step after which another one runs."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    # Any end.
    ENDED = "ended"


class OnFailure(StrEnum):
    """The effect that the failure of a step has on its workflow."""

    # The workflow fails; steps that need its result are cancelled.
    FAIL = "fail"
    # Its result is None, and the workflow may still succeed.
    CONTINUE = "continue"


class Spread(StrEnum):
    """How the calls of a map are made from a list that is known at run time."""

    # A call for each item, with the item as its argument.
    MAP = "map"
    # A call for each item, with the item as the list of its arguments.
    STARMAP = "starmap"
    # A call for each group of items, with a list of them as its argument.
    CHUNKS = "chunks"


FINAL_STEPS = frozenset(
    {StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.SKIPPED, StepStatus.CANCELLED}
)
FINAL_WORKFLOWS = frozenset(
    {WorkflowStatus.SUCCEEDED, WorkflowStatus.FAILED, WorkflowStatus.CANCELLED}
)
