"""List workflows, enqueue them with an audit entry, and list those that may be enqueued."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import ENQUEUE, VIEW_WORKFLOWS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Moment, Text
from taskqueue.api.problems import InvalidQuery
from taskqueue.api.views import Paged, page, page_of, rows_after
from taskqueue.api.workflows.bodies import EnqueueWorkflow, exposed_workflows, wanted_graph
from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.declarations.argument_schema import argument_schema
from taskqueue.monitoring.read_models.base import about, from_row, json_form
from taskqueue.monitoring.read_models.workflow import STATUSES, ListedWorkflow, shown_workflows
from taskqueue.monitoring.searching.workflows import WorkflowFilter, matching_workflows
from taskqueue.results.workflow_enqueueing import enqueue_graph_by_hand

LONGEST = 500


@dataclass(frozen=True, kw_only=True)
class WorkflowReceipt:
    """The answer to an enqueue."""

    id: UUID
    name: str
    status: str = about(choices=STATUSES)
    created: bool = about("false: another workflow holds the unique key.")


class WorkflowQuery(Paged):
    """The filter of workflows: all parameters have to match. Children are found by `parent`."""

    status = Text(
        required=False, max_length=LONGEST,
        help_text=f"{', '.join(STATUSES)}; several are separated by commas.",
    )  # fmt: skip
    name = Text(required=False, max_length=LONGEST, help_text="The name; `shop.*`: its beginning.")
    schedule = Text(required=False, max_length=LONGEST, help_text="The name of its schedule.")
    unique_key = Text(required=False, max_length=LONGEST)
    id = Text(required=False, max_length=36, help_text="The beginning of its id; children too.")
    parent = serializers.UUIDField(  # type: ignore[assignment]
        required=False, help_text="The workflow that runs it as a step."
    )
    created_after = Moment(required=False)
    created_before = Moment(required=False)
    paused = serializers.ChoiceField(required=False, choices=["true", "false"])


WorkflowPage = page_of(ListedWorkflow, "Workflows, the newest first.")


class WorkflowList(ApiView):
    """Workflows."""

    needs = {"GET": (VIEW_WORKFLOWS,), "POST": (ENQUEUE,)}
    scope = "enqueue"
    tag = "workflows"
    has_etag = True
    located = (200, 201)

    @endpoint("listWorkflows", answers={200: WorkflowPage}, query=WorkflowQuery)
    def get(self, request: Request) -> Response:
        """Workflows that match, the newest first; without those that others run as steps."""
        rows = matching_workflows(which_of(self.parameters))
        found = rows_after(rows, "-id", self.parameters, UUID)
        return page(self, found, "id", shown_workflows)

    @endpoint(
        "enqueueWorkflow",
        answers={200: WorkflowReceipt, 201: WorkflowReceipt},
        body=EnqueueWorkflow,
        problems=(409,),
    )
    def post(self, request: Request) -> Response:
        """Enqueue a workflow marked `api=True`, or steps of task types marked so.

        201 with its address; 200 where another workflow holds the unique key; under
        `on_duplicate="raise"` that is a 409 which names it.
        """
        graph, reason = wanted_graph(self.parameters), self.parameters["reason"]

        def act() -> Response:
            run = enqueue_graph_by_hand(graph, by=request.user, reason=reason)
            shown = json_form(from_row(WorkflowReceipt, run))
            answer = Response(shown, status=201 if run.created else 200)
            answer["Location"] = self.address("workflow", run.id)
            return answer

        return self.idempotent(act)


def which_of(query: Mapping[str, Any]) -> WorkflowFilter:
    """Return the filter of a list. Raises 400."""
    statuses = [word for word in query.get("status", "").split(",") if word]
    if wrong := [word for word in statuses if word not in tuple(WorkflowStatus)]:
        raise InvalidQuery({"status": [f"{wrong[0]!r} is none of {', '.join(STATUSES)}."]})
    name = query.get("name", "")
    is_prefix = name.endswith("*")
    try:
        return WorkflowFilter(
            statuses=statuses,
            names=[name] if name and not is_prefix else (),
            name_prefix=name.removesuffix("*") if is_prefix else "",
            schedule=query.get("schedule", ""),
            unique_key=query.get("unique_key", ""),
            id_prefix=query.get("id", ""),
            parent=query.get("parent"),
            created_after=query.get("created_after"),
            created_before=query.get("created_before"),
            is_paused=None if "paused" not in query else query["paused"] == "true",
        )
    except ValueError as error:
        raise InvalidQuery({"id": [str(error)]}) from None


@dataclass(frozen=True, kw_only=True)
class WorkflowType:
    """A workflow with `api=True`; durations are seconds."""

    name: str
    doc: str = about("Its docstring.")
    version: str
    deadline: timedelta | None = about("The time limit from its enqueue.")
    retention: timedelta | None
    fail_fast: bool
    has_unique_key: bool
    on_duplicate: str
    sensitive: list[str] = about("Arguments, and keys of its context, that are never shown.")
    arguments: dict[str, Any] = about("A JSON Schema (2020-12) of `args` and `kwargs`.")


@dataclass(frozen=True, kw_only=True)
class WorkflowTypes:
    """All types of workflows that may be enqueued."""

    results: list[WorkflowType]


class WorkflowTypeList(ApiView):
    """The workflows that may be enqueued."""

    needs = {"GET": (ENQUEUE,)}
    tag = "workflows"
    has_etag = True

    @endpoint("listWorkflowTypes", answers={200: WorkflowTypes})
    def get(self, request: Request) -> Response:
        """The workflows with `api=True`, by name, with a JSON Schema of their arguments."""
        return self.shown(WorkflowTypes(results=_types()))


def _types() -> list[WorkflowType]:
    return [
        from_row(
            WorkflowType,
            workflow.options,
            name=workflow.name,
            doc=inspect.cleandoc(workflow.__doc__ or ""),
            deadline=_duration(workflow.options.deadline),
            has_unique_key=workflow.has_key,
            sensitive=sorted(workflow.options.sensitive),
            arguments=argument_schema(workflow),
        )
        for workflow in exposed_workflows()
    ]


def _duration(deadline: Any) -> timedelta | None:
    return None if isinstance(deadline, datetime) else deadline
