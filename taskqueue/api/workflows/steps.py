"""The steps of a workflow, and the tasks of a step."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_TASKS, VIEW_WORKFLOWS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Text
from taskqueue.api.problems import Problem
from taskqueue.api.views import Digits, Paged, page, page_of, rows_after
from taskqueue.core.suggestions import did_you_mean
from taskqueue.core.workflow_states import StepStatus
from taskqueue.models import Step, Workflow
from taskqueue.monitoring.read_models.step import (
    ShownMember,
    ShownStep,
    members_of,
    shown_members,
    shown_steps,
    steps_of,
)
from taskqueue.results.workflows import row_of

STEP_STATUSES = [status.value for status in StepStatus]


class StepQuery(Paged):
    """The filter of steps."""

    status = serializers.ChoiceField(choices=STEP_STATUSES, required=False)


StepPage = page_of(ShownStep, "Steps, in the order in which they were built.")


class WorkflowSteps(ApiView):
    """The steps of a workflow."""

    needs = {"GET": (VIEW_WORKFLOWS,)}
    tag = "workflows"
    has_etag = True

    @endpoint("listSteps", answers={200: StepPage}, query=StepQuery, problems=(404,))
    def get(self, request: Request, workflow_id: str) -> Response:
        """Its steps, with how many of their members have ended."""
        rows = steps_of(row_of(workflow_id).id)
        if "status" in self.parameters:
            rows = rows.filter(status=self.parameters["status"])
        found = rows_after(rows, "id", self.parameters, Digits().run_validation)
        return page(self, found, "id", lambda rows: shown_steps(rows, request.user))


class MemberQuery(Paged):
    """The step."""

    step = Text(max_length=100, help_text="The name of a step.")


MemberPage = page_of(ShownMember, "Tasks of a step, by their places.")


class WorkflowTasks(ApiView):
    """The tasks of one step of a workflow."""

    needs = {"GET": (VIEW_WORKFLOWS, VIEW_TASKS)}
    tag = "workflows"
    has_etag = True

    @endpoint("listMembers", answers={200: MemberPage}, query=MemberQuery, problems=(404,))
    def get(self, request: Request, workflow_id: str) -> Response:
        """The tasks of a step that were sent, by their places; a single one has the place 0."""
        step = step_of(row_of(workflow_id), self.parameters["step"])
        found = rows_after(members_of(step), "place", self.parameters, Digits().run_validation)
        return page(self, found, "place", shown_members)


def step_of(workflow: Workflow, name: str) -> Step:
    """Return the step of that name. Raises 404."""
    rows = steps_of(workflow.id)
    step = rows.filter(name=name).first()
    if step is None:
        hint = did_you_mean(name, list(rows.values_list("name", flat=True)))
        detail = f"The workflow has no step {name!r}.{hint}"
        raise Problem(404, "step_not_found", detail)
    return step
