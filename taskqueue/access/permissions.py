"""The permissions of people; the admin and the REST API ask for the same ones."""

VIEW_TASKS = "taskqueue.view_task"
VIEW_ARGUMENTS = "taskqueue.view_arguments"
# View attempts.
VIEW_LEASES = "taskqueue.view_lease"
VIEW_LOGS = "taskqueue.view_tasklog"
ENQUEUE = "taskqueue.enqueue"
# Retry, cancel waiting tasks, reschedule, change. Verbs that make a task need `ENQUEUE` too.
OPERATE = "taskqueue.operate"
# Stop running tasks and workers.
STOP = "taskqueue.stop"
CONTROL_QUEUES = "taskqueue.control_queues"
# Pause and delete schedules. Creating, editing, resuming and running need `ENQUEUE` too.
EDIT_SCHEDULES = "taskqueue.edit_schedules"
# Create, change, silence and delete alert rules. Acknowledging an alert takes `OPERATE`.
MANAGE_ALERTS = "taskqueue.manage_alerts"
PURGE = "taskqueue.purge"
# Share saved searches, and change the shared ones of others. One's own take `VIEW_TASKS`.
MANAGE_SEARCHES = "taskqueue.manage_searches"
# View and change endpoints of webhooks, their deliveries, and what receivers answered.
MANAGE_WEBHOOKS = "taskqueue.manage_webhooks"
VIEW_QUEUES = "taskqueue.view_queue"
VIEW_LIMITS = "taskqueue.view_limit"
VIEW_WORKERS = "taskqueue.view_worker"
VIEW_WORKFLOWS = "taskqueue.view_workflow"
VIEW_SCHEDULES = "taskqueue.view_schedule"
VIEW_OCCURRENCES = "taskqueue.view_occurrence"
VIEW_OPERATIONS = "taskqueue.view_operation"
VIEW_ALERTS = "taskqueue.view_incident"
VIEW_ALERT_RULES = "taskqueue.view_alertrule"
VIEW_AUDITS = "taskqueue.view_audit"
VIEW_FIGURES = "taskqueue.view_rollup"
# Who may see the events of each noun.
VIEW_EVENTS = {
    "task": VIEW_TASKS,
    "workflow": VIEW_WORKFLOWS,
    "step": VIEW_WORKFLOWS,
    "schedule": VIEW_SCHEDULES,
    "queue": VIEW_QUEUES,
    "worker": VIEW_WORKERS,
    "operation": VIEW_OPERATIONS,
    "alert": VIEW_ALERTS,
}
