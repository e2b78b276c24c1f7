"""The table: for each route of the API and each method, which permissions are all needed.

A new route needs a row here: without one, `test_every_route_stands_in_the_table` fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from taskqueue.api.tasks.detail import ACTS
from taskqueue.engine.control.task_verbs import BULK_VERBS, TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from tests.admin.matrix.roles import NONE, Permissions
from tests.sample.rest_tasks import tell
from tests.sample.rest_workflows import deliver
from tests.sample.tasks import greet
from tests.verb_needs import NEEDS, arguments_for, row_for

CHANGING = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request, and what it comes to for those who may."""

    method: str
    needs: Permissions
    on: str = ""
    """The row of `tests.admin.everything` that the address names."""
    query: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    """A value such as `$failed` stands for the id of that row, also inside a list."""
    answers: int = 200
    changes: bool = True
    """Whether what is answered has changed rows; only for methods that may."""
    for_anybody: bool = False
    """Also for those who have not logged in."""

    @property
    def writes(self) -> bool:
        """Whether rows are others afterwards."""
        return self.changes and self.method in CHANGING


def look(*needs: str, **more: Any) -> Ask:
    """A GET."""
    return Ask(method="GET", needs=frozenset(needs), **more)


def act(*needs: str, method: str = "POST", **more: Any) -> Ask:
    """A request that changes something, a POST if nothing else is said."""
    return Ask(method=method, needs=frozenset(needs), **more)


METHODS = ("GET", *CHANGING)
ONE_TASK = "tasks/<str:task_id>/"
WEBHOOK = "webhooks/<str:endpoint_id>/"
WORKFLOW = "workflows/<str:workflow_id>/"
OPERATING = ("view_task", "operate")
GREETING = {"name": greet.name, "args": ["Ann"]}
QUEUE = ("view_queue", "control_queues")
LIMIT = ("view_limit", "control_queues")
WORKER = ("view_worker", "stop")
SCHEDULE = ("view_schedule", "edit_schedules")
ALERT_RULE = ("view_alertrule", "manage_alerts")
RULE = {"kind": "every", "interval": 60}
CALL = {"task": greet.name, "args": ["Ann"], "kwargs": {}, "options": {}}


def _one(verb: TaskVerb) -> Ask:
    """A verb on one task; what makes a task is done to one of a type that allows it."""
    needs, body = NEEDS["task", verb.name].split(), arguments_for(verb)
    if "enqueue" in needs:
        return act("view_task", *needs, on="exposed task", body=body, answers=201)
    answers = 202 if verb.name == "stop" else 200
    return act("view_task", *needs, on=row_for(verb), body=body, answers=answers)


def _many(verb: TaskVerb) -> Ask:
    """An operation on a task that allows the verb."""
    arguments = {"arguments": arguments_for(verb)} if verb.parameters else {}
    body = {"verb": verb.name, "ids": [f"${row_for(verb)}"], **arguments}
    return act("view_task", *NEEDS["task", verb.name].split(), body=body, answers=202)


NOWHERE = r"^[\s\S]*/$"
"""What is none of the others."""
TABLE: dict[str, tuple[Ask, ...]] = {
    "tasks/": (look("view_task"), act("enqueue", body=GREETING, answers=201)),
    "tasks/bulk/": (act("enqueue", body={"tasks": [GREETING, GREETING]}, answers=201),),
    ONE_TASK: (
        look("view_task", on="failed"),
        act(*OPERATING, method="PATCH", on="ready", body={"priority": 7}),
        act("view_task", "purge", method="DELETE", on="failed", answers=204),
    ),
    **{
        f"{ONE_TASK}{path}/": (_one(TASK_VERBS[path.replace("-", "_")]),)
        for path in ACTS
        if path != "release"
    },
    f"{ONE_TASK}cancel/": (
        _one(TASK_VERBS["cancel"]),
        act(*OPERATING, "stop", on="running", answers=202),
    ),
    f"{ONE_TASK}release/": (act(*OPERATING, on="failed"),),
    f"{ONE_TASK}attempts/": (look("view_task", "view_lease", on="failed"),),
    f"{ONE_TASK}logs/": (look("view_task", "view_tasklog", on="failed"),),
    f"{ONE_TASK}parts/": (look("view_task", on="failed"),),
    f"{ONE_TASK}timeline/": (look("view_task", on="failed"),),
    f"{ONE_TASK}why/": (look("view_task", on="failed"),),
    "": (look(),),
    "notices/": (look("view_task"),),
    "doctor/": (
        look("view_task", "view_worker"),
        act("view_task", "view_worker", "operate", answers=202),
    ),
    "queues/": (look("view_queue"),),
    "queues/<path:name>/": (
        look("view_queue", on="queue"),
        act(*QUEUE, method="PATCH", on="queue", body={"limit": {"concurrency": 3}}),
        act(*QUEUE, method="DELETE", on="empty queue", answers=204),
    ),
    "queues/<path:name>/depth/": (look("view_queue", on="queue"),),
    "queues/<path:name>/fairness/": (look("view_queue", on="queue"),),
    "pauses/": (look("view_queue"),),
    "pauses/everything/": (look("view_queue"),),
    "pauses/definitions/<path:name>/": (look("view_queue", on="failed"),),
    "pauses/everything/pause/": (act(*QUEUE, body={"until": 300}),),
    "pauses/everything/resume/": (act(*QUEUE, on="pause of everything"),),
    "pauses/definitions/<path:name>/pause/": (act(*QUEUE, on="failed", body={"until": 300}),),
    "pauses/definitions/<path:name>/resume/": (act(*QUEUE, on="paused definition"),),
    "queues/<path:name>/pause/": (act(*QUEUE, on="queue", body={"until": 300}),),
    "queues/<path:name>/resume/": (act(*QUEUE, on="paused queue"),),
    "limits/": (look("view_limit"),),
    "limits/<str:name>/": (
        look("view_limit", on="limit"),
        act(*LIMIT, method="PATCH", on="limit", body={"concurrency": 3}),
    ),
    "limits/<str:name>/reset/": (act(*LIMIT, on="changed limit"),),
    "limits/<str:name>/keys/": (look("view_limit", on="limit"),),
    "workers/": (look("view_worker"),),
    "workers/<path:name>/": (look("view_worker", on="worker"),),
    "workers/<path:name>/quiet/": (act(*WORKER, on="worker", answers=202),),
    "workers/<path:name>/resume/": (act(*WORKER, on="asked worker", answers=202),),
    "workers/<path:name>/change/": (
        act(*WORKER, on="worker", body={"concurrency": 2}, answers=202),
    ),
    "workers/<path:name>/stop/": (act(*WORKER, on="worker", answers=202),),
    "workers/<path:name>/kill/": (act(*WORKER, on="worker", answers=202),),
    "schedules/": (
        look("view_schedule"),
        act(
            *SCHEDULE,
            "enqueue",
            answers=201,
            body={"name": "new", "rule": RULE, **CALL},
        ),
    ),
    "schedules-document/": (
        look("view_schedule"),
        act(
            *SCHEDULE,
            "enqueue",
            body={
                "schedules": [{"name": "new", "task": greet.name, "args": ["Ann"], "rule": RULE}]
            },
        ),
    ),
    "schedules/<str:name>/": (
        look("view_schedule", on="schedule"),
        act(*SCHEDULE, "enqueue", method="PATCH", on="schedule", body={"rule": RULE, **CALL}),
        act(*SCHEDULE, method="PATCH", on="schedule", body={"enabled": False}),
        act(*SCHEDULE, method="DELETE", on="schedule", answers=204),
    ),
    "schedules/<str:name>/run/": (act(*SCHEDULE, "enqueue", on="schedule", answers=202),),
    "schedules/<str:name>/pause/": (act(*SCHEDULE, on="schedule"),),
    "schedules/<str:name>/resume/": (act(*SCHEDULE, "enqueue", on="paused schedule"),),
    "schedules/<str:name>/copy/": (
        act(*SCHEDULE, "enqueue", on="schedule", body={"name": "new", **CALL}, answers=201),
    ),
    "schedules/<str:name>/preview/": (look("view_schedule", on="schedule"),),
    "schedules/<str:name>/runs/": (look("view_schedule", "view_occurrence", on="schedule"),),
    "alerts/": (look("view_incident"), look("view_incident", query="?status=firing&rule=plain")),
    "alerts/<str:alert_id>/": (look("view_incident", on="incident"),),
    "alerts/<str:alert_id>/acknowledge/": (act("view_incident", "operate", on="incident"),),
    "alert-rules/": (
        look("view_alertrule"),
        act(*ALERT_RULE, body={"name": "new", "kind": "doctor"}, answers=201),
    ),
    "alert-rules/<str:name>/": (
        look("view_alertrule", on="alertrule"),
        act(*ALERT_RULE, method="PATCH", on="alertrule", body={"wait": 30}),
        act(*ALERT_RULE, method="DELETE", on="alertrule", answers=204),
    ),
    "alert-rules/<str:name>/silence/": (act(*ALERT_RULE, on="alertrule", body={"until": 300}),),
    "alert-rules/<str:name>/unsilence/": (act(*ALERT_RULE, on="silenced rule"),),
    "alert-rules/<str:name>/test/": (act(*ALERT_RULE, on="alertrule", answers=202),),
    "audit/": (look("view_audit"), look("view_audit", query="?subject=plain")),
    "rules/preview/": (act("view_schedule", body={"rule": RULE}, changes=False),),
    "searches/": (
        look("view_task"),
        act("view_task", body={"name": "new", "query": "status:failed"}, answers=201),
        act(
            "view_task",
            "manage_searches",
            body={"name": "new", "query": "status:failed", "is_shared": True},
            answers=201,
        ),
    ),
    "searches/<str:search_id>/": (
        look("view_task", on="search"),
        act("view_task", "manage_searches", method="PATCH", on="search", body={"name": "other"}),
        act("view_task", "manage_searches", method="DELETE", on="search", answers=204),
    ),
    "operations/": (
        look("view_operation"),
        *map(_many, BULK_VERBS.values()),
    ),
    "operations/<str:operation_id>/": (look("view_operation", on="operation"),),
    "operations/<str:operation_id>/cancel/": (act("view_operation", "operate", on="operation"),),
    "webhooks/": (
        look("manage_webhooks"),
        act("manage_webhooks", body={"url": "https://example.com/new"}, answers=201),
    ),
    WEBHOOK: (
        look("manage_webhooks", on="endpoint"),
        act("manage_webhooks", method="PATCH", on="endpoint", body={"kinds": ["task.failed"]}),
        act(
            "manage_webhooks",
            "view_arguments",
            method="PATCH",
            on="endpoint",
            body={"include": ["error"]},
        ),
        act("manage_webhooks", method="DELETE", on="endpoint", answers=204),
    ),
    f"{WEBHOOK}enable/": (act("manage_webhooks", on="disabled endpoint"),),
    f"{WEBHOOK}disable/": (act("manage_webhooks", on="endpoint"),),
    f"{WEBHOOK}rotate/": (act("manage_webhooks", on="endpoint"),),
    f"{WEBHOOK}test/": (act("manage_webhooks", on="endpoint", answers=202),),
    f"{WEBHOOK}replay/": (
        act("manage_webhooks", on="endpoint", body={"since": "2026-01-01T00:00:00Z"}, answers=202),
    ),
    f"{WEBHOOK}deliveries/": (look("manage_webhooks", on="endpoint"),),
    f"{WEBHOOK}deliveries/<str:delivery_id>/redeliver/": (
        act("manage_webhooks", on="endpoint", answers=202),
    ),
    "workflows/": (
        look("view_workflow"),
        act("enqueue", body={"name": deliver.name, "kwargs": {"day": "monday"}}, answers=201),
        act("enqueue", body={"steps": [{"name": "a", "task": tell.name}]}, answers=201),
    ),
    WORKFLOW: (
        look("view_workflow", on="workflow"),
        act("view_workflow", "purge", method="DELETE", on="finished workflow", answers=204),
    ),
    f"{WORKFLOW}cancel/": (act("view_workflow", "operate", on="workflow"),),
    f"{WORKFLOW}pause/": (act("view_workflow", "operate", on="workflow"),),
    f"{WORKFLOW}resume/": (act("view_workflow", "operate", on="paused workflow"),),
    f"{WORKFLOW}retry/": (
        act("view_workflow", "operate", on="finished workflow"),
        act("view_workflow", "operate", on="finished workflow", body={"from_step": "echo"}),
    ),
    f"{WORKFLOW}resolve/": (
        act("view_workflow", "operate", on="finished workflow", body={"step": "echo", "value": 1}),
    ),
    f"{WORKFLOW}steps/": (look("view_workflow", on="workflow"),),
    f"{WORKFLOW}tasks/": (look("view_workflow", "view_task", on="workflow", query="?step=echo"),),
    f"{WORKFLOW}graph/": (
        look("view_workflow", on="workflow"),
        look("view_workflow", on="workflow", query="?format=svg"),
        look("view_workflow", on="workflow", query="?format=mermaid"),
    ),
    "events/": (look("view_task"), look("view_task", query="?after=0&kind=task.*")),
    # The tests' server is no ASGI one; `tests.api.test_events` asks one that is.
    "events/stream/": (look("view_task", answers=501),),
    "groups/": (look("view_task"), look("view_task", query="?name=plain")),
    "groups/fire/": (act("view_task", "operate", body={"name": "plain", "group": "42"}),),
    "workflow-types/": (look("enqueue"),),
    "task-types/": (look("enqueue"),),
    "task-types/<path:name>/": (look("enqueue", on="exposed type"),),
    "stats/": (look("view_task", "view_rollup"),),
    "stats/series/": (look("view_rollup", query="?span=day"),),
    "stats/attempts/": (look("view_lease", "view_task"),),
    "stats/failures/": (look("view_task"),),
    "stats/performance/": (look("view_rollup", query="?span=day"),),
    "healthz/live": (look(for_anybody=True),),
    "healthz/ready": (look(for_anybody=True),),
    "schema/": (look(), look(query="?format=yaml")),
    "docs/": (look(),),
    "metrics": (look("view_rollup"),),
    NOWHERE: tuple(
        Ask(method=method, needs=NONE, answers=404, changes=False) for method in METHODS
    ),
}
"""By route, as `taskqueue.api.urls` has it."""
ROUTES = sorted(TABLE)
ASKS = [(route, ask) for route in ROUTES for ask in TABLE[route]]
ACTS = [(route, ask) for route, ask in ASKS if ask.method in CHANGING]
