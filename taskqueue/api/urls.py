"""The addresses of the API, to be included under a prefix of the project's choice.

What is named by free text is matched last: such a name may hold a slash.
"""

from __future__ import annotations

from django.urls import URLPattern, path, re_path

from taskqueue.api import (
    audit,
    documents,
    failures,
    not_found,
    operations,
    probes,
    queues,
    rules,
    schedule_acts,
    schedules,
    stats,
    task_types,
    workers,
)
from taskqueue.api.tasks.urls import TASKS

app_name = "taskqueue-api"
ADDRESSES: list[URLPattern] = [
    *TASKS,
    path("queues/", queues.QueueList.as_view(), name="queues"),
    *(
        path(f"queues/<path:name>/{verb}/", view.as_view(), name=f"queue-{verb}")
        for verb, view in queues.ACTS.items()
    ),
    path("queues/<path:name>/", queues.QueueDetail.as_view(), name="queue"),
    path("workers/", workers.WorkerList.as_view(), name="workers"),
    *(
        path(f"workers/<path:name>/{verb}/", view.as_view(), name=f"worker-{verb}")
        for verb, view in workers.ACTS.items()
    ),
    path("workers/<path:name>/", workers.WorkerDetail.as_view(), name="worker"),
    path("schedules/", schedules.ScheduleList.as_view(), name="schedules"),
    path("schedules/<str:name>/", schedules.ScheduleDetail.as_view(), name="schedule"),
    *(
        path(f"schedules/<str:name>/{verb}/", view.as_view(), name=f"schedule-{verb}")
        for verb, view in schedule_acts.ACTS.items()
    ),
    path(
        "schedules/<str:name>/preview/",
        schedule_acts.SchedulePreview.as_view(),
        name="schedule-preview",
    ),
    path("schedules/<str:name>/runs/", schedule_acts.ScheduleRuns.as_view(), name="schedule-runs"),
    path("rules/preview/", rules.RulePreview.as_view(), name="rule-preview"),
    path("operations/", operations.OperationList.as_view(), name="operations"),
    path("operations/<str:operation_id>/", operations.OperationDetail.as_view(), name="operation"),
    path(
        "operations/<str:operation_id>/cancel/",
        operations.OperationCancel.as_view(),
        name="operation-cancel",
    ),
    path("task-types/", task_types.TaskTypeList.as_view(), name="task-types"),
    path("task-types/<path:name>/", task_types.TaskTypeDetail.as_view(), name="task-type"),
    path("audit/", audit.AuditList.as_view(), name="audit"),
    path("stats/", stats.Stats.as_view(), name="stats"),
    path("stats/series/", stats.StatsSeries.as_view(), name="series"),
    path("stats/failures/", failures.Failures.as_view(), name="failures"),
    path("stats/performance/", stats.Performance.as_view(), name="performance"),
    path("healthz/live", probes.Live.as_view(), name="live"),
    path("healthz/ready", probes.Ready.as_view(), name="ready"),
    path("schema/", documents.SchemaDocument.as_view(), name="schema"),
    path("docs/", documents.Docs.as_view(), name="docs"),
    path("metrics", probes.Metrics.as_view(), name="metrics"),
]
SLASHLESS = [
    path(route.removesuffix("/"), not_found.NotFound.as_view())
    for route in (str(each.pattern) for each in ADDRESSES)
    if route.endswith("/")
]
urlpatterns = [
    *ADDRESSES,
    # Every other address that ends with a slash is refused in the way of this API.
    re_path(r"^[\s\S]*/$", not_found.NotFound.as_view()),
    # Last, so that none of these can end with a slash. Other addresses without one are left to the
    # patterns that the project includes after these.
    *SLASHLESS,
]
