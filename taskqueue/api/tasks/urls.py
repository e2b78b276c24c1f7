"""The addresses of tasks."""

from __future__ import annotations

from django.urls import path

from taskqueue.api.tasks import acts, attempts, bulk, detail, lists, logs, reasons

ONE = "tasks/<str:task_id>/"
"""Not `<uuid:…>`: who asks for what is no id is answered by the API too."""
TASKS = [
    path("tasks/", lists.TaskList.as_view(), name="tasks"),
    path("tasks/bulk/", bulk.TaskBulk.as_view(), name="task-bulk"),
    path(ONE, detail.TaskDetail.as_view(), name="task"),
    *(
        path(f"{ONE}{verb}/", view.as_view(), name=f"task-{verb}")
        for verb, view in acts.ACTS.items()
    ),
    path(f"{ONE}attempts/", attempts.TaskAttempts.as_view(), name="task-attempts"),
    path(f"{ONE}logs/", logs.TaskLogs.as_view(), name="task-logs"),
    path(f"{ONE}why/", reasons.TaskWhy.as_view(), name="task-why"),
]
