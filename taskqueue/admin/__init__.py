"""The admin's pages: what is stored, to be looked at, and schedules, to be edited too.

Django imports this where its admin is.
"""

from __future__ import annotations

from django.contrib import admin

from taskqueue.admin.audit import AuditAdmin
from taskqueue.admin.dashboard.pages import DashboardAdmin
from taskqueue.admin.failures import FailureAdmin
from taskqueue.admin.leases import LeaseAdmin
from taskqueue.admin.logs import TaskLogAdmin
from taskqueue.admin.naming import name_models
from taskqueue.admin.occurrences import OccurrenceAdmin
from taskqueue.admin.operations.pages import OperationAdmin
from taskqueue.admin.performance import PerformanceAdmin
from taskqueue.admin.queues.pages import QueueAdmin
from taskqueue.admin.schedules.lists import ScheduleAdmin
from taskqueue.admin.tasks.pages import TaskAdmin
from taskqueue.admin.workers.pages import WorkerAdmin
from taskqueue.models import (
    Audit,
    Dashboard,
    Failure,
    Lease,
    Occurrence,
    Operation,
    Performance,
    Queue,
    Schedule,
    Task,
    TaskLog,
    Worker,
)

name_models()

admin.site.register(Dashboard, DashboardAdmin)
admin.site.register(Task, TaskAdmin)
admin.site.register(Failure, FailureAdmin)
admin.site.register(Performance, PerformanceAdmin)
admin.site.register(Lease, LeaseAdmin)
admin.site.register(Worker, WorkerAdmin)
admin.site.register(Queue, QueueAdmin)
admin.site.register(Schedule, ScheduleAdmin)
admin.site.register(Occurrence, OccurrenceAdmin)
admin.site.register(Operation, OperationAdmin)
admin.site.register(TaskLog, TaskLogAdmin)
admin.site.register(Audit, AuditAdmin)
