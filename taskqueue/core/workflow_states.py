"""The statuses of workflows, the kinds and statuses of steps, and when a step follows another."""

from enum import StrEnum


class WorkflowStatus(StrEnum):
    """The status of a workflow; `succeeded`, `failed` and `cancelled` are final."""

    # Its steps run, or wait for others; it may be paused.
    RUNNING = "running"
    # Nothing more is released; what runs was asked to stop.
    STOPPING = "stopping"
    # It has failed or was cancelled, and its succeeded steps are undone.
    COMPENSATING = "compensating"
    # All its steps ended, and none failed that may not.
    SUCCEEDED = "succeeded"
    # A step failed, or its deadline passed.
    FAILED = "failed"
    # Somebody cancelled it.
    CANCELLED = "cancelled"


class StepKind(StrEnum):
    """The kinds of steps, by what they run."""

    # One task.
    TASK = "task"
    # Many members: tasks of one definition, or unlike calls with limits, workflows included.
    MAP = "map"
    # A workflow of its own.
    WORKFLOW = "workflow"
    # Nothing: it waits for others and gathers their results.
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
    """The end of a step after which another one runs."""

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
    """How the calls of a map are made of a list that is known at run time."""

    # A call for each item, which is its argument.
    MAP = "map"
    # A call for each item, which is the list of its arguments.
    STARMAP = "starmap"
    # A call for each so many items, which are a list.
    CHUNKS = "chunks"


FINAL_STEPS = frozenset(
    {StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.SKIPPED, StepStatus.CANCELLED}
)
FINAL_WORKFLOWS = frozenset(
    {WorkflowStatus.SUCCEEDED, WorkflowStatus.FAILED, WorkflowStatus.CANCELLED}
)
