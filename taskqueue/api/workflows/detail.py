"""View one workflow, wait for it, delete it, and apply verbs to it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import STOP, VIEW_WORKFLOWS
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Anything, Reasoned, Strict, Text
from taskqueue.api.problems import forbidden
from taskqueue.api.tasks.waiting import LONGEST_WAIT, waited
from taskqueue.api.views import Digits, OneView, act_view
from taskqueue.api.workflows.steps import step_of
from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.declarations.workflows.bounds import LONGEST_NAME
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.workflows.by_hand import runs_anything
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Workflow
from taskqueue.monitoring.read_models.workflow import ShownWorkflow, shown_workflow
from taskqueue.results.workflows import row_of


class Waiting(Strict):
    """The parameter for a wait."""

    wait = Digits(default=0, max_value=LONGEST_WAIT, help_text="Seconds to wait for its end.")


class WorkflowView(OneView):
    """One workflow. If-Match compares its status and the requests to pause or cancel it."""

    needs = {"GET": (VIEW_WORKFLOWS,)}
    tag = "workflows"
    compared = ("pk", "status", "paused_at", "stop_requested_at")
    answers = {200: ShownWorkflow}

    def find(self, key: UUID | str) -> Workflow:
        return row_of(key)

    def details(self, found: Workflow) -> ShownWorkflow:
        return shown_workflow(found, self.request.user)

    def outcome(self, verb: Verb, key: str, result: Any) -> Response:
        """Return 204 when it is deleted, and 202 while workers delete the rest."""
        if verb.name == "delete" and not result:
            return self.answer(key, status=202)
        return super().outcome(verb, key, result)

    def run(self, request: Request, key: str) -> Response:
        """Apply the verb. Raises 403 if it would stop running tasks and the user may not."""
        self._refuse_to_stop(key)
        for name in {"from_step", "step"} & self.parameters.keys():
            step_of(row_of(key), self.parameters[name])
        try:
            return self.act(self.verb, key, **self.parameters)
        except TransitionRefused:
            self._refuse_to_stop(key)  # A task may have started meanwhile.
            raise

    def _refuse_to_stop(self, key: str) -> None:
        if not self.verb.stops or self.request.user.has_perm(STOP):
            return
        if runs_anything(project_connection(), row_of(key).id):
            raise forbidden(self.request.user, (STOP,), "Tasks of it are running.")


class WorkflowDetail(WorkflowView):
    """View and delete a workflow."""

    needs = {
        "GET": (VIEW_WORKFLOWS,),
        "DELETE": (VIEW_WORKFLOWS, *WORKFLOW_VERBS["delete"].permissions),
    }

    @endpoint(
        "getWorkflow", answers={200: ShownWorkflow, 304: None}, query=Waiting, problems=(404,)
    )
    def get(self, request: Request, workflow_id: str) -> Response:
        """View the workflow without its steps. With `wait`, answer once it has ended."""
        seconds = self.parameters["wait"]
        if seconds:
            waited(
                self,
                lambda: row_of(workflow_id).status,
                lambda status: status in FINAL_WORKFLOWS,
                seconds,
            )
        return self.answer(workflow_id)

    @endpoint(
        "deleteWorkflow",
        answers={202: ShownWorkflow, 204: None},
        query=Reasoned,
        problems=(404, 409, 412, 422),
    )
    def delete(self, request: Request, workflow_id: str) -> Response:
        """Delete a workflow that has ended, with its children and all their tasks: 204.

        If it has more tasks than can be deleted at once, workers delete the rest soon after: 202.
        """
        return self.act(WORKFLOW_VERBS["delete"], workflow_id, **self.parameters)


class RetryBody(Reasoned):
    """From where it runs again."""

    from_step = Text(
        required=False, max_length=LONGEST_NAME,
        help_text="Run this step and all later ones again; default: failed and cancelled steps.",
    )  # fmt: skip


class ResolveBody(Reasoned):
    """A failed step, and its result."""

    step = Text(max_length=LONGEST_NAME, help_text="The name of a step that has failed.")
    value = Anything(help_text="The result that it is to have.", allow_null=True)


BODIES = {"retry": RetryBody, "resolve": ResolveBody}
ACTS = {
    name: act_view(WorkflowView, verb, body=BODIES.get(name, Reasoned))
    for name, verb in WORKFLOW_VERBS.items()
    if name != "delete"
}
