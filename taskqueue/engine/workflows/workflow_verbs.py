"""The table of verbs on workflows, and who may use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import OPERATE, PURGE, STOP
from taskqueue.core.workflow_states import FINAL_WORKFLOWS, WorkflowStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.workflows.by_hand import (
    cancel_workflow,
    delete_workflow,
    pause_workflow,
    resolve_workflow,
    resume_workflow,
    retry_workflow,
    runs_anything,
)
from taskqueue.engine.workflows.verbs import ENDED_OR_RUNNING, RETRIABLE, RUNNING
from taskqueue.models import Workflow


@dataclass(frozen=True, kw_only=True)
class WorkflowVerb(Verb):
    """A verb on workflows."""

    noun: str = "workflow"
    # Statuses that allow it.
    statuses: frozenset[WorkflowStatus]
    # Whether it stops running tasks, which requires the permission to stop tasks.
    stops: bool = False
    # Whether it still has something to do for a workflow in an allowed status.
    fits: Callable[[Workflow], bool] = lambda workflow: True
    # Names of its arguments; each has a field in the admin, the API and the CLI.
    parameters: tuple[str, ...] = ()

    def act_by(self, user: Any, key: Any, **arguments: Any) -> Any:
        """Run the verb as far as the user's permissions allow."""
        if self.stops and not user.has_perm(STOP):
            arguments["may_stop"] = False
        return super().act_by(user, key, **arguments)

    def is_for_workflow(self, user: Any, workflow: Workflow) -> bool:
        """Return whether the user may run it on the workflow in its current state."""
        if not self.is_for(user) or workflow.status not in self.statuses or not self.fits(workflow):
            return False
        if self.stops and not user.has_perm(STOP):
            return not runs_anything(project_connection(), workflow.id)
        return True


def _is_its_own(workflow: Workflow) -> bool:
    """Return whether the workflow is not a step of another one."""
    return workflow.parent_step_id is None


_VERBS = (
    WorkflowVerb(
        name="cancel",
        function=cancel_workflow,
        permissions=(OPERATE,),
        statuses=RUNNING,
        stops=True,
        label=_("Cancel"),
        entry=_("cancel workflow"),
        effect=_(
            "Nothing more of it is started, waiting tasks are cancelled, and running tasks are"
            " asked to stop."
        ),
        done=_("Workflow %(name)s is asked to stop."),
        help="start nothing more of a workflow, and ask its running tasks to stop",
        details="Running tasks need the permission to stop: 403 without it.",
        is_grave=True,
    ),
    WorkflowVerb(
        name="pause",
        function=pause_workflow,
        permissions=(OPERATE,),
        statuses=RUNNING,
        fits=lambda workflow: workflow.paused_at is None,
        label=_("Pause"),
        entry=_("pause workflow"),
        effect=_("Nothing more of it is started until it is resumed; running tasks continue."),
        done=_("Workflow %(name)s paused; running tasks continue."),
        help="start nothing more of a workflow; running tasks continue",
    ),
    WorkflowVerb(
        name="resume",
        function=resume_workflow,
        permissions=(OPERATE,),
        statuses=RUNNING,
        fits=lambda workflow: workflow.paused_at is not None,
        label=_("Resume"),
        entry=_("resume workflow"),
        done=_("Workflow %(name)s resumed."),
        help="end the pause of a workflow",
    ),
    WorkflowVerb(
        name="retry",
        function=retry_workflow,
        permissions=(OPERATE,),
        statuses=ENDED_OR_RUNNING,
        fits=lambda workflow: (
            _is_its_own(workflow)
            and (workflow.status in FINAL_WORKFLOWS or workflow.failed_step != "")
        ),
        parameters=("from_step",),
        label=_("Retry"),
        entry=_("retry workflow"),
        effect=_(
            "Failed and cancelled steps run again, and what waited for them; steps that succeeded"
            " stay. With a chosen step, that step and all steps that depend on it run again too."
        ),
        done=_("Workflow %(name)s runs again."),
        help="run failed and cancelled steps of a workflow again",
        details="""Steps that succeeded stay. With `from_step`, that step and all steps that depend
        on it run again too, however they ended. 409 if there is nothing to run again, and for a
        child of a workflow.""",
    ),
    WorkflowVerb(
        name="resolve",
        function=resolve_workflow,
        permissions=(OPERATE,),
        statuses=RETRIABLE,
        fits=lambda workflow: _is_its_own(workflow) and workflow.failed_step != "",
        parameters=("step", "value"),
        label=_("Resolve a step"),
        entry=_("resolve step of workflow"),
        effect=_(
            "A step that failed counts as succeeded with the result that you give; what it"
            " cancelled waits again."
        ),
        done=_("A step of workflow %(name)s is resolved."),
        help="count a failed step of a workflow as succeeded",
        details="What the step had cancelled waits again. 409 if it has not failed.",
    ),
    WorkflowVerb(
        name="delete",
        function=delete_workflow,
        permissions=(PURGE,),
        statuses=FINAL_WORKFLOWS,
        fits=_is_its_own,
        label=_("Delete"),
        entry=_("delete workflow"),
        effect=_(
            "It is deleted with its tasks, their attempts and log lines. Only the audit entry"
            " remains."
        ),
        done=_("Workflow %(name)s deleted."),
        help="delete a workflow that has ended, with all its tasks and child workflows",
        details="Of a large one workers delete the rest within moments: 202 then.",
        is_grave=True,
    ),
)
WORKFLOW_VERBS = {verb.name: verb for verb in _VERBS}
