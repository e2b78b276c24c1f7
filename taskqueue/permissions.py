"""The permissions of people, by kind of act: the admin and the REST API ask for the same."""

from __future__ import annotations

VIEW_TASKS = "taskqueue.view_task"
VIEW_ARGUMENTS = "taskqueue.view_arguments"
ENQUEUE = "taskqueue.enqueue"
OPERATE = "taskqueue.operate"
"""Retry, cancel what waits, reschedule, change. What makes a new task asks for `ENQUEUE` too."""
STOP = "taskqueue.stop"
"""Stop what runs, and workers."""
CONTROL_QUEUES = "taskqueue.control_queues"
EDIT_SCHEDULES = "taskqueue.edit_schedules"
PURGE = "taskqueue.purge"
VIEW_QUEUES = "taskqueue.view_queue"
VIEW_WORKERS = "taskqueue.view_worker"
VIEW_SCHEDULES = "taskqueue.view_schedule"
VIEW_OPERATIONS = "taskqueue.view_operation"
VIEW_FIGURES = "taskqueue.view_rollup"
