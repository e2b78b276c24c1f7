"""The schedules that workflows declare: the calls of their runs, and their checks."""

from __future__ import annotations

from taskqueue.declarations.declared_schedules import (
    check_rule,
    require_arguments,
    require_options,
)
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.declarations.workflows.canvas import StepCall
from taskqueue.declarations.workflows.workflow import OPTIONS, BaseWorkflow
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidArguments, InvalidSchedule, InvalidTask


def check_scheduled_workflow(scheduled: Scheduled, workflow: BaseWorkflow) -> None:
    """Raise `InvalidSchedule` if the schedule cannot work with that workflow.

    Its graph is not built: its function may ask the database.
    """
    check_rule(scheduled, workflow.name)
    call_of(scheduled, workflow)


def call_of(scheduled: Scheduled, workflow: BaseWorkflow) -> StepCall:
    """Return the call that each run makes; `build()` gives its graph. Raises `InvalidSchedule`."""
    require_arguments(scheduled)
    require_options(scheduled)
    try:
        options = {
            name: OPTIONS[name].kind.parse(name, value) if name in OPTIONS else value
            for name, value in scheduled.options.items()
        }
        return workflow.using(**options).si(*scheduled.args, **scheduled.kwargs)
    except (ArgumentsDoNotBind, InvalidArguments, InvalidTask, TypeError) as error:
        raise InvalidSchedule(str(error)) from None
