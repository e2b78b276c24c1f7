"""The models; each noun has a module."""

from taskqueue.models.alert import AlertRule, Incident
from taskqueue.models.audit import Audit
from taskqueue.models.call_count import CallCount
from taskqueue.models.collected import Collected
from taskqueue.models.event import Audience, Event, EventBatch, Subscription
from taskqueue.models.examination import Examination
from taskqueue.models.export import Export
from taskqueue.models.idempotency import IdempotencyKey
from taskqueue.models.lease import Lease, ResultPart, TaskLog
from taskqueue.models.limit import Limit, LimitCount, Limiter, LimitNote, LimitPlan, Partition, Slot
from taskqueue.models.operation import Operation
from taskqueue.models.pages import Dashboard, Failure, Performance
from taskqueue.models.pause import Pause
from taskqueue.models.queue import Queue
from taskqueue.models.rollup import Arrival, Depth, Rollup, Total
from taskqueue.models.schedule import Occurrence, Schedule
from taskqueue.models.search import SavedSearch
from taskqueue.models.stay import Stay
from taskqueue.models.task import Task
from taskqueue.models.webhook import Delivery, Endpoint
from taskqueue.models.worker import Worker
from taskqueue.models.workflow import Dependency, Member, Step, StepCalls, StepEnd, Workflow
from taskqueue.models.workflow_count import WorkflowCount

__all__ = [
    "AlertRule",
    "Arrival",
    "Audience",
    "Audit",
    "CallCount",
    "Collected",
    "Dashboard",
    "Delivery",
    "Dependency",
    "Depth",
    "Endpoint",
    "Event",
    "EventBatch",
    "Examination",
    "Export",
    "Failure",
    "IdempotencyKey",
    "Incident",
    "Lease",
    "Limit",
    "LimitCount",
    "LimitNote",
    "LimitPlan",
    "Limiter",
    "Member",
    "Occurrence",
    "Operation",
    "Partition",
    "Pause",
    "Performance",
    "Queue",
    "ResultPart",
    "Rollup",
    "SavedSearch",
    "Schedule",
    "Slot",
    "Stay",
    "Step",
    "StepCalls",
    "StepEnd",
    "Subscription",
    "Task",
    "TaskLog",
    "Total",
    "Worker",
    "Workflow",
    "WorkflowCount",
]  # fmt: skip
