"""The drawing of a workflow as data, an SVG file, or text for Mermaid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_WORKFLOWS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Strict, Text
from taskqueue.api.headers import etag_of, is_known
from taskqueue.api.workflows.steps import STEP_STATUSES
from taskqueue.core.workflow_states import After, StepKind
from taskqueue.declarations.workflows.drawing import mermaid, picture_to_json, standalone_svg
from taskqueue.engine.workflows.pictures import picture_of_workflow
from taskqueue.results.workflows import row_of

SVG, MERMAID = "image/svg+xml", "text/plain"
# A browser that opens a drawing runs nothing in it.
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


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
        "layer": serializers.IntegerField(help_text="It comes after all steps that it follows."),
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
