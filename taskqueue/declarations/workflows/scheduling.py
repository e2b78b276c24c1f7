"""The targets of schedules, definitions and workflows: found by name, and checked."""

from __future__ import annotations

from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.declared_schedules import (
    check_rule,
    check_scheduled,
    require_arguments,
    require_options,
)
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.scheduled import Scheduled, as_invalid
from taskqueue.declarations.workflows.canvas import StepCall
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.declarations.workflows.workflow import OPTIONS, BaseWorkflow, workflows
from taskqueue.exceptions import (
    ArgumentsDoNotBind,
    InvalidArguments,
    InvalidSchedule,
    InvalidTask,
    UnknownTask,
)

Target = BaseDefinition[Any, Any] | BaseWorkflow


def all_targets() -> list[Target]:
    """Return all definitions, then all workflows, each by name."""
    return [*registry.all(), *workflows.all()]


def target_named(name: str) -> Target:
    """Return the definition, or else the workflow, of that name.

    Raises `UnknownTask`, which suggests the nearest.
    """
    found = registry.find(name) or workflows.find(name)
    if found is None:
        hint = did_you_mean(name, [each.name for each in all_targets()])
        raise UnknownTask(_(
            "No task and no workflow is named {name!r}.{hint}", name=name, hint=hint
        ))  # fmt: skip
    return found


def check_target(scheduled: Scheduled, target: Target) -> None:
    """Raise `InvalidSchedule` if the schedule cannot work with its task or workflow."""
    if isinstance(target, BaseWorkflow):
        check_scheduled_workflow(scheduled, target)
    else:
        check_scheduled(scheduled, target)


def check_scheduled_workflow(scheduled: Scheduled, workflow: BaseWorkflow) -> None:
    """Raise `InvalidSchedule` if the schedule cannot work with that workflow.

    Its graph is not built: its function may ask the database.
    """
    check_rule(scheduled, workflow.name)
    call_of(scheduled, workflow)


def call_of(scheduled: Scheduled, workflow: BaseWorkflow) -> StepCall:
    """Return the call of each run; `build()` returns its graph. Raises `InvalidSchedule`."""
    require_arguments(scheduled)
    require_options(scheduled)
    try:
        return workflow.using(**workflow_options(scheduled)).si(*scheduled.args, **scheduled.kwargs)
    except (ArgumentsDoNotBind, InvalidArguments, InvalidTask, TypeError) as error:
        raise as_invalid(error) from None


def workflow_options(scheduled: Scheduled) -> dict[str, Any]:
    """Return the options of the schedule as `.using()` takes them. Raises `InvalidTask`."""
    if "on_duplicate" in scheduled.options:
        raise InvalidSchedule(_(
            "on_duplicate is not an option of a schedule: a run is skipped then."
        ))  # fmt: skip
    return {
        name: OPTIONS[name].kind.parse(name, value) if name in OPTIONS else value
        for name, value in scheduled.options.items()
    }


def graph_of(scheduled: Scheduled, workflow: BaseWorkflow) -> Graph:
    """Build the graph of a run. Raises `InvalidSchedule`, whatever the function raises."""
    call = call_of(scheduled, workflow)
    try:
        return call.build()
    except (ArgumentsDoNotBind, InvalidArguments, InvalidTask) as error:
        raise as_invalid(error) from None
    except Exception as error:  # The function is the project's. It may tell a secret.
        raise InvalidSchedule(_(
            "{workflow} raised {type} with these arguments.",
            workflow=workflow.name, type=type(error).__name__,
        )) from error  # fmt: skip
