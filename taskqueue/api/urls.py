"""The addresses of the API, to be included under a prefix of the project's choice.

What is named by free text is matched last: such a name may hold a slash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponsePermanentRedirect
from django.urls import URLPattern, path, re_path
from django.utils.http import escape_leading_slashes
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.api import (
    alerts,
    audit,
    doctor,
    documents,
    events,
    gantt,
    groups,
    limits,
    operations,
    pauses,
    probes,
    queues,
    rules,
    schedule_copies,
    schedule_documents,
    schedule_times,
    schedules,
    searches,
    stats,
    task_types,
    webhooks,
    workers,
)
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.problems import Problem
from taskqueue.api.tasks import detail, history, lists, parts
from taskqueue.api.workflows import detail as workflow
from taskqueue.api.workflows import graph, steps
from taskqueue.api.workflows import lists as workflows


class Root(ApiView):
    """The root, which leads to everything else."""

    needs = {"GET": ()}
    tag = "health"
    has_etag = True

    @endpoint(
        "getRoot", answers={200: {"type": "object", "additionalProperties": {"type": "string"}}}
    )
    def get(self, request: Request) -> Response:
        """Return the addresses that need no name or id, by the names of what is there."""
        names = (str(each.name) for each in ADDRESSES if _is_read_as_it_is(each))
        return self.shown({name: self.address(name) for name in names})


def _is_read_as_it_is(address: URLPattern) -> bool:
    is_read = hasattr(address.callback.cls, "get")  # type: ignore[attr-defined]
    return is_read and "<" not in str(address.pattern) and address.name != "root"


class NotFound(ApiView):
    """404, or a redirect where only the final slash is missing.

    Django itself would redirect each request, also a POST, which then becomes a GET: nothing would
    be enqueued, and the client would see 200.
    """

    needs = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), ())
    schema: Any = None

    def get(self, request: Request, *key: str) -> Any:
        """Redirect to the address with a final slash: reading is the same by GET."""
        if request.path.endswith("/"):
            return self.post(request)
        address = request._request.get_full_path(force_append_slash=True)
        return HttpResponsePermanentRedirect(escape_leading_slashes(address))

    def post(self, request: Request, *key: str) -> Response:
        """404, with the address that was meant."""
        path = request.path
        hint = "" if path.endswith("/") else f" Its address ends with a slash: {path}/"
        raise Problem(404, "not_found", f"Nothing exists at {path}.{hint}")

    put = patch = delete = post


def _of(one: str, noun: str, views: Mapping[str, type[ApiView]]) -> list[URLPattern]:
    """Return the addresses below that of one resource, by their last part."""
    return [
        path(f"{one}{name}/", view.as_view(), name=f"{noun}-{name}") for name, view in views.items()
    ]


# Not `<uuid:…>`: who asks for what is no id is answered by the API too.
TASK = "tasks/<str:task_id>/"
QUEUE, WORKER = "queues/<path:name>/", "workers/<path:name>/"
LIMIT, PAUSE = "limits/<str:name>/", "pauses/definitions/<path:name>/"
ALERT, ALERT_RULE = "alerts/<str:alert_id>/", "alert-rules/<str:name>/"
SCHEDULE, OPERATION = "schedules/<str:name>/", "operations/<str:operation_id>/"
WORKFLOW = "workflows/<str:workflow_id>/"
WEBHOOK = "webhooks/<str:endpoint_id>/"
app_name = "taskqueue-api"
ADDRESSES: list[URLPattern] = [
    path("", Root.as_view(), name="root"),
    path("tasks/", lists.TaskList.as_view(), name="tasks"),
    path("tasks/bulk/", lists.TaskBulk.as_view(), name="task-bulk"),
    path(TASK, detail.TaskDetail.as_view(), name="task"),
    *_of(TASK, "task", detail.ACTS),
    path(f"{TASK}attempts/", history.TaskAttempts.as_view(), name="task-attempts"),
    path(f"{TASK}logs/", history.TaskLogs.as_view(), name="task-logs"),
    path(f"{TASK}parts/", parts.TaskParts.as_view(), name="task-parts"),
    path(f"{TASK}timeline/", history.TaskTimeline.as_view(), name="task-timeline"),
    path(f"{TASK}why/", history.TaskWhy.as_view(), name="task-why"),
    path("queues/", queues.QueueList.as_view(), name="queues"),
    *_of(QUEUE, "queue", queues.ACTS),
    path(f"{QUEUE}depth/", queues.QueueDepthView.as_view(), name="queue-depth"),
    path(f"{QUEUE}fairness/", queues.QueueFairness.as_view(), name="queue-fairness"),
    path(QUEUE, queues.QueueDetail.as_view(), name="queue"),
    path("pauses/", pauses.PauseList.as_view(), name="pauses"),
    path("pauses/everything/pause/", pauses.PAUSE_EVERYTHING.as_view(), name="pause-everything"),
    path("pauses/everything/resume/", pauses.RESUME_EVERYTHING.as_view(), name="resume-everything"),
    path("pauses/everything/", pauses.EverythingDetail.as_view(), name="everything"),
    *_of(PAUSE, "definition", pauses.DEFINITION_ACTS),
    path(PAUSE, pauses.PauseDetail.as_view(), name="definition"),
    path("groups/", groups.GroupList.as_view(), name="groups"),
    path("groups/fire/", groups.GroupFire.as_view(), name="group-fire"),
    path("limits/", limits.LimitList.as_view(), name="limits"),
    path(LIMIT, limits.LimitDetail.as_view(), name="limit"),
    path(f"{LIMIT}reset/", limits.LimitReset.as_view(), name="limit-reset"),
    path(f"{LIMIT}keys/", limits.LimitKeys.as_view(), name="limit-keys"),
    path("workers/", workers.WorkerList.as_view(), name="workers"),
    *_of(WORKER, "worker", workers.ACTS),
    path(WORKER, workers.WorkerDetail.as_view(), name="worker"),
    path("schedules/", schedules.ScheduleList.as_view(), name="schedules"),
    path(
        "schedules-document/",
        schedule_documents.SchedulesDocument.as_view(),
        name="schedules-document",
    ),
    path(SCHEDULE, schedules.ScheduleDetail.as_view(), name="schedule"),
    *_of(SCHEDULE, "schedule", schedules.ACTS),
    path(f"{SCHEDULE}copy/", schedule_copies.ScheduleCopy.as_view(), name="schedule-copy"),
    path(f"{SCHEDULE}preview/", schedule_times.SchedulePreview.as_view(), name="schedule-preview"),
    path(f"{SCHEDULE}runs/", schedule_times.ScheduleRuns.as_view(), name="schedule-runs"),
    path("rules/preview/", rules.RulePreview.as_view(), name="rule-preview"),
    path("searches/", searches.SearchList.as_view(), name="searches"),
    path("searches/<str:search_id>/", searches.SearchDetail.as_view(), name="search"),
    path("operations/", operations.OperationList.as_view(), name="operations"),
    path(OPERATION, operations.OperationDetail.as_view(), name="operation"),
    *_of(OPERATION, "operation", operations.ACTS),
    path("webhooks/", webhooks.EndpointList.as_view(), name="webhooks"),
    path(WEBHOOK, webhooks.EndpointDetail.as_view(), name="webhook"),
    *_of(WEBHOOK, "webhook", webhooks.ACTS),
    path(f"{WEBHOOK}deliveries/", webhooks.DeliveryList.as_view(), name="webhook-deliveries"),
    path(
        f"{WEBHOOK}deliveries/<str:delivery_id>/redeliver/",
        webhooks.Redeliver.as_view(),
        name="delivery-redeliver",
    ),
    path("workflows/", workflows.WorkflowList.as_view(), name="workflows"),
    path(WORKFLOW, workflow.WorkflowDetail.as_view(), name="workflow"),
    *_of(WORKFLOW, "workflow", workflow.ACTS),
    path(f"{WORKFLOW}steps/", steps.WorkflowSteps.as_view(), name="workflow-steps"),
    path(f"{WORKFLOW}tasks/", steps.WorkflowTasks.as_view(), name="workflow-tasks"),
    path(f"{WORKFLOW}graph/", graph.WorkflowGraph.as_view(), name="workflow-graph"),
    path("workflow-types/", workflows.WorkflowTypeList.as_view(), name="workflow-types"),
    path("task-types/", task_types.TaskTypeList.as_view(), name="task-types"),
    path("task-types/<path:name>/", task_types.TaskTypeDetail.as_view(), name="task-type"),
    path("alerts/", alerts.AlertList.as_view(), name="alerts"),
    path(ALERT, alerts.AlertDetail.as_view(), name="alert"),
    *_of(ALERT, "alert", alerts.ALERT_ACTS),
    path("alert-rules/", alerts.AlertRuleList.as_view(), name="alert-rules"),
    path(ALERT_RULE, alerts.AlertRuleDetail.as_view(), name="alert-rule"),
    *_of(ALERT_RULE, "alert-rule", alerts.RULE_ACTS),
    path("audit/", audit.AuditList.as_view(), name="audit"),
    path("events/", events.EventList.as_view(), name="events"),
    path("events/stream/", events.EventStream.as_view(), name="event-stream"),
    path("notices/", doctor.NoticeList.as_view(), name="notices"),
    path("doctor/", doctor.Doctor.as_view(), name="doctor"),
    path("stats/", stats.Stats.as_view(), name="stats"),
    path("stats/series/", stats.StatsSeries.as_view(), name="series"),
    path("stats/attempts/", gantt.Attempts.as_view(), name="attempts"),
    path("stats/failures/", stats.Failures.as_view(), name="failures"),
    path("stats/performance/", stats.Performance.as_view(), name="performance"),
    path("healthz/live", probes.Live.as_view(), name="live"),
    path("healthz/ready", probes.Ready.as_view(), name="ready"),
    path("schema/", documents.SchemaDocument.as_view(), name="schema"),
    path("docs/", documents.Docs.as_view(), name="docs"),
    path("metrics", probes.Metrics.as_view(), name="metrics"),
]
SLASHLESS = [
    path(str(each.pattern).removesuffix("/"), NotFound.as_view())
    for each in ADDRESSES
    if str(each.pattern).endswith("/")
]
urlpatterns = [
    *ADDRESSES,
    # Every other address that ends with a slash is refused in the way of this API.
    re_path(r"^[\s\S]*/$", NotFound.as_view()),
    # Last, so that none of these can end with a slash. Other addresses without one are left to the
    # patterns that the project includes after these.
    *SLASHLESS,
]
