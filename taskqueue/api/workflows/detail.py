"""One workflow: shown, waited for, drawn, with its steps and their tasks; the verbs on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import STOP, VIEW_TASKS, VIEW_WORKFLOWS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Anything, Reasoned, Strict, Text
from taskqueue.api.headers import etag_of, is_known
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.waiting import LONGEST_WAIT, waited
from taskqueue.api.views import WHOLE, Digits, OneView, Paged, act_view, page, page_of, rows_after
from taskqueue.core.suggestions import did_you_mean
from taskqueue.core.workflow_states import FINAL_WORKFLOWS, After, StepKind, StepStatus
from taskqueue.declarations.workflows.bounds import LONGEST_NAME
from taskqueue.declarations.workflows.drawing import mermaid, picture_to_json, standalone_svg
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.workflows.by_hand import runs_anything
from taskqueue.engine.workflows.pictures import picture_of_workflow
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Step, Workflow
from taskqueue.monitoring.read_models.step import (
    ShownMember,
    ShownStep,
    members_of,
    shown_members,
    shown_steps,
    steps_of,
)
from taskqueue.monitoring.read_models.workflow import ShownWorkflow, shown_workflow
from taskqueue.results.workflows import row_of

STEP_STATUSES = [status.value for status in StepStatus]
SVG, MERMAID = "image/svg+xml", "text/plain"
# Nothing in a drawing is run, should a browser open it.
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


class Waiting(Strict):
    """How long to wait."""

    wait = Digits(default=0, max_value=LONGEST_WAIT, help_text="Seconds to wait for its end.")


class WorkflowView(OneView):
    """One workflow. If-Match compares its status and what people asked of it."""

    needs = {"GET": (VIEW_WORKFLOWS,)}
    tag = "workflows"
    compared = ("pk", "status", "paused_at", "stop_requested_at")
    answers = {200: ShownWorkflow}

    def find(self, key: UUID | str) -> Workflow:
        return row_of(key)

    def details(self, found: Workflow) -> ShownWorkflow:
        return shown_workflow(found, self.request.user)

    def outcome(self, verb: Verb, key: str, result: Any) -> Response:
        """204 once it is deleted; 202 while workers delete the rest."""
        if verb.name == "delete" and not result:
            return self.answer(key, status=202)
        return super().outcome(verb, key, result)

    def run(self, request: Request, key: str) -> Response:
        """Do the verb. Raises 403 where it would stop what runs, and the user may not."""
        self._refuse_to_stop(key)
        for name in {"from_step", "step"} & self.parameters.keys():
            _step(row_of(key), self.parameters[name])
        try:
            return self.act(self.verb, key, **self.parameters)
        except TransitionRefused:
            self._refuse_to_stop(key)  # Something may have started meanwhile.
            raise

    def _refuse_to_stop(self, key: str) -> None:
        if not self.verb.stops or self.request.user.has_perm(STOP):
            return
        if runs_anything(project_connection(), row_of(key).id):
            detail = "Tasks of it are running: to stop them needs the permission to stop tasks."
            raise Problem(403, "permission_denied", detail)


class WorkflowDetail(WorkflowView):
    """Looking at a workflow, and deleting it."""

    needs = {
        "GET": (VIEW_WORKFLOWS,),
        "DELETE": (VIEW_WORKFLOWS, *WORKFLOW_VERBS["delete"].permissions),
    }

    @endpoint(
        "getWorkflow", answers={200: ShownWorkflow, 304: None}, query=Waiting, problems=(404,)
    )
    def get(self, request: Request, workflow_id: str) -> Response:
        """All there is to say about it but its steps; with `wait`, once it has ended."""
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

        Of one with more tasks than are deleted at once, workers delete the rest within moments:
        202.
        """
        return self.act(WORKFLOW_VERBS["delete"], workflow_id, **self.parameters)


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
        found = rows_after(rows, "id", self.parameters, _number)
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
        step = _step(row_of(workflow_id), self.parameters["step"])
        found = rows_after(members_of(step), "place", self.parameters, _number)
        return page(self, found, "place", shown_members)


def _step(workflow: Workflow, name: str) -> Step:
    rows = steps_of(workflow.id)
    step = rows.filter(name=name).first()
    if step is None:
        hint = did_you_mean(name, list(rows.values_list("name", flat=True)))
        detail = f"The workflow has no step {name!r}.{hint}"
        raise Problem(404, "step_not_found", detail)
    return step


def _number(text: str) -> int:
    if not WHOLE.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _object(name: str, doc: str, fields: Mapping[str, Any]) -> type[serializers.Serializer[Any]]:
    return type(name, (serializers.Serializer,), {"__doc__": doc, **fields})


def _counts(text: str) -> serializers.DictField:
    return serializers.DictField(child=serializers.IntegerField(), help_text=text)


GraphNode = _object(
    "GraphNode",
    "A step, or several of one type and depth.",
    {
        "name": Text(),
        "kind": serializers.ChoiceField(choices=[kind.value for kind in StepKind]),
        "calls": Text(help_text="The task type or workflow that it runs; empty: none."),
        "status": serializers.ChoiceField(choices=STEP_STATUSES),
        "steps": serializers.IntegerField(help_text="The steps that it stands for."),
        "layer": serializers.IntegerField(help_text="It stands behind all that it follows."),
        "shares": _counts("Members of a map, or several steps, by status."),
    },
)
GraphLink = _object(
    "GraphLink",
    "A dependency.",
    {
        "from": Text(),
        "to": Text(),
        "when": serializers.ChoiceField(choices=[end.value for end in After]),
    },
)
GraphJSON = _object(
    "Graph",
    "A workflow as it is drawn: at most 300 nodes. It holds names, and no arguments.",
    {
        "name": Text(),
        "steps": serializers.IntegerField(),
        "counts": _counts("Steps by status."),
        "nodes": GraphNode(many=True),
        "links": GraphLink(many=True),
    },
)


class GraphQuery(Strict):
    """The format."""

    format = serializers.ChoiceField(
        choices=["json", "svg", "mermaid"], required=False, default="json"
    )


class WorkflowGraph(ApiView):
    """The drawing of a workflow."""

    needs = {"GET": (VIEW_WORKFLOWS,)}
    tag = "workflows"
    has_etag = True

    @endpoint(
        "drawWorkflow",
        answers={200: GraphJSON, (200, SVG): str, (200, MERMAID): str},
        query=GraphQuery,
        problems=(404,),
    )
    def get(self, request: Request, workflow_id: str) -> Response | HttpResponse:
        """Return its graph as it is now: JSON, an SVG file, or text for Mermaid."""
        picture = picture_of_workflow(row_of(workflow_id))
        if self.parameters["format"] == "json":
            return self.shown(picture_to_json(picture))
        is_svg = self.parameters["format"] == "svg"
        text = standalone_svg(picture) if is_svg else mermaid(picture)
        headers = {"ETag": etag_of(text), "Content-Security-Policy": SANDBOX}
        if is_known(request, headers["ETag"]):
            return Response(status=304, headers={"ETag": headers["ETag"]})
        media_type = SVG if is_svg else MERMAID
        return HttpResponse(text, content_type=f"{media_type}; charset=utf-8", headers=headers)


class RetryBody(Reasoned):
    """From where it runs again."""

    from_step = Text(
        required=False, max_length=LONGEST_NAME,
        help_text="A step: it and all behind it run anew. Without: what failed or was cancelled.",
    )  # fmt: skip


class ResolveBody(Reasoned):
    """A step that failed, and its result."""

    step = Text(max_length=LONGEST_NAME, help_text="The name of a step that has failed.")
    value = Anything(help_text="The result that it is to have.", allow_null=True)


BODIES = {"retry": RetryBody, "resolve": ResolveBody}
ACTS = {
    name: act_view(WorkflowView, verb, body=BODIES.get(name, Reasoned))
    for name, verb in WORKFLOW_VERBS.items()
    if name != "delete"
}
