"""The table: for each route who may look, and what may be posted by whom.

A way to be let in is a set of permissions that are all needed; of several ways one is enough.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from taskqueue.admin.tasks.acts import BUTTONS
from taskqueue.admin.tasks.forms import FORMS as EDITED
from taskqueue.engine.control.task_verbs import BULK_VERBS, TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS, WorkflowVerb
from tests.admin.matrix.roles import NONE, Permissions
from tests.admin.schedule_rows import filled
from tests.sample.tasks import echo
from tests.verb_needs import MAKING, NEEDS, row_for

Ways = list[Permissions]


def ways(*each: str) -> Ways:
    """`ways("a b", "c")`: a and b together, or c."""
    return [frozenset(way.split()) for way in each]


NOBODY: Ways = []
ANY_STAFF: Ways = [NONE]


@dataclass(frozen=True, kw_only=True)
class Act:
    """A POST that changes something, for those who may; `on` is the row it is done to."""

    name: str
    needs: Ways
    body: dict[str, Any]
    """A value such as `$failed` stands for the key of that row."""
    on: str
    query: str = ""
    answers: int = 302
    refused: frozenset[int] = frozenset({403})


@dataclass(frozen=True, kw_only=True)
class Page:
    """Who may GET it. `look` is None where nobody has anything to GET there."""

    look: Ways | None
    on: str = ""
    query: dict[str, str] = field(default_factory=dict)
    answers: int = 200
    acts: tuple[Act, ...] = ()

    @property
    def entry(self) -> Ways:
        """Who is let in at all, if only to be told that the method is wrong."""
        return (
            self.look if self.look is not None else [way for act in self.acts for way in act.needs]
        )

    @property
    def rules(self) -> list[Ways]:
        """All that decides about somebody here."""
        return [self.entry, *(act.needs for act in self.acts)]


def _of_rows(model: str, look: Ways) -> dict[str, Page]:
    """What the admin has for every model, where nothing can be changed by its forms."""
    row = f"{model}/<path:object_id>"
    return {
        f"{model}/": Page(look=look),
        f"{model}/add/": Page(look=NOBODY),
        f"{row}/history/": Page(look=look, on=model),
        f"{row}/delete/": Page(look=NOBODY, on=model),
        f"{row}/change/": Page(look=look, on=model),
        f"{row}/": Page(look=ANY_STAFF, on=model, answers=302),
    }


def _task_act(verb: TaskVerb, on: str, needs: str) -> Act:
    confirmed = {"post": "yes"} if verb.name == "delete" else {}
    body = {"verb": verb.name, **confirmed}
    return Act(name=verb.name, on=on, needs=ways(f"view_task {needs}"), body=body)


def _task_edit(verb: TaskVerb) -> Act:
    """A form of one task, filled in."""
    body = FORMS.get(verb.name) or {each.name: "in 5 minutes" for each in verb.parameters}
    needs = ways(f"view_task {NEEDS['task', verb.name]}")
    return Act(name=verb.name, on=row_for(verb), needs=needs, body=body)


def _many(verb: TaskVerb) -> Act:
    """The page that starts an operation, confirmed."""
    body = {"verb": verb.name, "ids": f"${row_for(verb)}", "confirmed": "1", "reason": "why"}
    for parameter in verb.parameters:
        body |= {"moment": {"run_after": "in 5 minutes"}, "changes": {"priority": "7"}}[
            parameter.kind
        ]
    return Act(
        name=verb.name, on="", needs=ways(f"view_task {NEEDS['task', verb.name]}"), body=body
    )


def _schedule_act(verb: str, on: str = "schedule", needs: str = "edit_schedules") -> Act:
    return Act(name=verb, on=on, needs=ways(needs), body={"verb": verb})


WORKFLOWS = {
    "cancel": "workflow", "pause": "workflow", "resume": "paused workflow",
    "retry": "finished workflow", "resolve": "finished workflow", "delete": "finished workflow",
}  # fmt: skip


def _workflow_act(verb: WorkflowVerb) -> Act:
    filled = {"from_step": "echo", "step": "echo", "value": "1"}
    body = {name: filled[name] for name in verb.parameters}
    body |= {"verb": verb.name, "confirmed": "yes", "reason": "why"}
    needs = ways(f"view_workflow {NEEDS['workflow', verb.name]}")
    return Act(name=verb.name, on=WORKFLOWS[verb.name], needs=needs, body=body)


def _action(action: str, on: str, needs: str, **more: Any) -> Act:
    """An action of a list: whom it is not offered to is led back to the list."""
    body = {"action": action, "_selected_action": f"${on}", "index": "0", **more}
    refused = frozenset({200, 302, 403, 405})
    return Act(name=action, on=on, needs=ways(needs), body=body, refused=refused)


FORMS: dict[str, dict[str, str]] = {
    "retry_with": {"args": '["other"]', "kwargs": ""},
    "update": {"priority": "9", "queue_name": "other", "max_attempts": "5"},
}
"""What the forms of these verbs are filled in with."""
TASK_ACTS = (
    *(_task_act(verb, row_for(verb), NEEDS["task", verb.name]) for verb in BUTTONS.values()),
    _task_act(BUTTONS["cancel"], "running", "stop"),
)
TASK_EDITS = tuple(_task_edit(TASK_VERBS[name]) for name in EDITED)
VIEW_TASK = ways("view_task")
EDIT_SCHEDULES = ways("edit_schedules")
MANAGE_ALERTS = ways("view_alertrule manage_alerts")
MAKE_SCHEDULES = ways(MAKING)
CAN_SEE_SCHEDULES = ways("view_schedule", "edit_schedules")
OPERATE = ways("view_task operate")
WEBHOOKS = ways("manage_webhooks")
PAUSE = {"verb": "pause", "minutes": "5", "reason": "why"}
ENQUEUE = ways("enqueue")
ENQUEUE_TASK = Act(
    name="enqueue", on="", query=f"?name={echo.name}", needs=ENQUEUE,
    body={"arg_args": "[1]", "arg_kwargs": "{}", "options": "{}"},
)  # fmt: skip
DELETE_TASK = Act(
    name="delete", on="failed", needs=ways("view_task purge"), body={"post": "yes"},
)  # fmt: skip

DOCUMENT = json.dumps(
    {"schedules": [{"name": "new", "task": echo.name, "rule": {"kind": "every", "interval": 60}}]}
)
# The tests' server is no ASGI one; `tests.admin.test_live` asks one that is.
NO_ASGI = 404
PAGES: dict[str, Page] = {
    "dashboard/": Page(look=VIEW_TASK),
    "dashboard/stream/": Page(look=VIEW_TASK, answers=NO_ASGI),
    "dashboard/doctor/": Page(look=ways("view_task view_worker")),
    "failure/": Page(look=VIEW_TASK),
    "performance/": Page(look=VIEW_TASK),
    **_of_rows("lease", ways("view_lease")),
    "lease/gantt/": Page(look=ways("view_lease view_task")),
    **_of_rows("tasklog", ways("view_tasklog")),
    **_of_rows("occurrence", ways("view_occurrence")),
    **_of_rows("audit", ways("view_audit")),
    **_of_rows("worker", ways("view_worker")),
    "worker/<int:object_id>/act/": Page(
        look=None,
        acts=(
            *(
                Act(name=verb, on="worker", needs=ways("stop"),
                    body={"verb": verb, "confirmed": "1"})
                for verb in ("quiet", "stop", "kill")
            ),
            Act(name="resume", on="asked worker", needs=ways("stop"), body={"verb": "resume"}),
            Act(name="change", on="worker", needs=ways("stop"),
                body={"verb": "change", "concurrency": "7", "queues": "mail=3@2"}),
        ),
    ),
    "worker/resume/": Page(
        look=None,
        acts=(Act(name="resume", on="", needs=ways("stop"), body={"reason": "why"}),),
    ),
    **_of_rows("queue", ways("view_queue")),
    "queue/named/": Page(look=ways("view_queue"), query={"name": "unseen"}),
    "queue/pauses/": Page(
        look=None,
        acts=(
            Act(name="pause_all", on="", needs=ways("control_queues"),
                body={"verb": "pause_all", "minutes": "5"}),
            Act(name="resume_all", on="", needs=ways("control_queues"),
                body={"verb": "resume_all"}),
            Act(name="pause definition", on="", needs=ways("control_queues"),
                body={"verb": "pause_definition", "definition": "shop.tasks.export"}),
        ),
    ),
    "queue/<taskqueue_name:name>/act/": Page(
        look=None,
        acts=(
            Act(name="pause", on="queue", needs=ways("control_queues"), body=PAUSE),
            Act(name="resume", on="paused queue", needs=ways("control_queues"),
                body={"verb": "resume"}),
            Act(name="limit", on="queue", needs=ways("control_queues"),
                body={"verb": "limit", "concurrency": "3", "rate": "9/m"}),
            Act(name="delete", on="empty queue", needs=ways("control_queues"),
                body={"verb": "delete"}),
        ),
    ),
    **_of_rows("limit", ways("view_limit")),
    "limit/<int:object_id>/act/": Page(
        look=None,
        acts=(
            Act(name="set", on="limit", needs=ways("control_queues"),
                body={"verb": "set", "concurrency": "3", "seen": "2/////"}),
            Act(name="reset", on="changed limit", needs=ways("control_queues"),
                body={"verb": "reset", "seen": "2///1//"}),
        ),
    ),
    **_of_rows("incident", ways("view_incident")),
    "incident/<int:object_id>/act/": Page(
        look=None,
        acts=(
            Act(name="acknowledge", on="incident", needs=ways("view_incident operate"),
                body={"verb": "acknowledge", "reason": "why"}),
        ),
    ),
    **_of_rows("alertrule", ways("view_alertrule")),
    "alertrule/new/": Page(
        look=MANAGE_ALERTS,
        acts=(
            Act(name="create", on="", needs=MANAGE_ALERTS,
                body={"name": "new", "kind": "doctor", "scope": "all", "enabled": "on"}),
        ),
    ),
    "alertrule/<int:object_id>/edit/": Page(
        look=MANAGE_ALERTS,
        on="alertrule",
        acts=(
            Act(name="edit", on="alertrule", needs=MANAGE_ALERTS,
                body={"kind": "doctor", "scope": "all", "wait": "30", "enabled": "on"}),
        ),
    ),
    "alertrule/<int:object_id>/act/": Page(
        look=None,
        acts=(
            Act(name="silence", on="alertrule", needs=MANAGE_ALERTS,
                body={"verb": "silence", "minutes": "5"}),
            Act(name="unsilence", on="silenced rule", needs=MANAGE_ALERTS,
                body={"verb": "unsilence"}),
            Act(name="test", on="alertrule", needs=MANAGE_ALERTS, body={"verb": "test"}),
            Act(name="delete", on="alertrule", needs=MANAGE_ALERTS,
                body={"verb": "delete", "confirmed": "1"}),
        ),
    ),
    **_of_rows("schedule", CAN_SEE_SCHEDULES),
    "schedule/": Page(
        look=CAN_SEE_SCHEDULES,
        acts=(
            _action("run_now", "schedule", MAKING),
            _action("pause", "schedule", "edit_schedules"),
            _action("resume", "paused schedule", MAKING),
            _action("delete_chosen", "schedule", "edit_schedules", post="yes"),
        ),
    ),
    "schedule/add/": Page(
        look=MAKE_SCHEDULES,
        acts=(Act(name="create", on="", needs=MAKE_SCHEDULES, body=filled()),),
    ),
    "schedule/preview/": Page(look=MAKE_SCHEDULES),
    "schedule/export/": Page(look=CAN_SEE_SCHEDULES),
    "schedule/import/": Page(
        look=MAKE_SCHEDULES,
        acts=(
            Act(name="import", on="", needs=MAKE_SCHEDULES,
                body={"document": DOCUMENT, "import": "1"}),
        ),
    ),
    "schedule/<int:object_id>/edit/": Page(
        look=MAKE_SCHEDULES,
        on="schedule",
        acts=(Act(name="edit", on="schedule", needs=MAKE_SCHEDULES, body=filled(overlap="allow")),),
    ),
    "schedule/<int:object_id>/run/": Page(
        look=MAKE_SCHEDULES,
        on="schedule",
        acts=(
            Act(name="run", on="sound schedule", needs=MAKE_SCHEDULES,
                body={"arg_args": "[1]", "reason": "why"}),
        ),
    ),
    "schedule/<int:object_id>/act/": Page(
        look=None,
        acts=(
            _schedule_act("run_now", needs=MAKING),
            _schedule_act("pause"),
            _schedule_act("resume", "paused schedule", needs=MAKING),
        ),
    ),
    "schedule/<path:object_id>/delete/": Page(
        look=EDIT_SCHEDULES,
        on="schedule",
        acts=(Act(name="delete", on="schedule", needs=EDIT_SCHEDULES, body={"post": "yes"}),),
    ),
    **_of_rows("task", VIEW_TASK),
    "task/add/": Page(look=ENQUEUE, query={"name": echo.name}, acts=(ENQUEUE_TASK,)),
    "task/searches/save/": Page(
        look=None,
        acts=(
            Act(name="save", on="", needs=VIEW_TASK, body={"query": "status:failed", "name": "f"}),
        ),
    ),
    "task/searches/<int:search_id>/": Page(
        look=None,
        acts=(
            Act(name="edit", on="search", needs=ways("view_task manage_searches"),
                body={"verb": "edit", "name": "renamed", "is_shared": "on"}),
            Act(name="delete", on="search", needs=ways("view_task manage_searches"),
                body={"verb": "delete"}),
        ),
    ),
    "task/export/": Page(look=VIEW_TASK),
    "task/suggest/": Page(look=VIEW_TASK),
    "task/<uuid:object_id>/log/": Page(look=ways("view_task view_tasklog"), on="failed"),
    "task/<uuid:object_id>/stream/": Page(look=VIEW_TASK, on="failed", answers=NO_ASGI),
    "task/<uuid:object_id>/act/": Page(look=None, acts=TASK_ACTS),
    "task/<path:object_id>/delete/": Page(
        look=ways("view_task purge"), on="failed", acts=(DELETE_TASK,)
    ),
    "task/<uuid:object_id>/edit/<slug:what>/": Page(
        look=ways("view_task operate enqueue"), on="failed", acts=TASK_EDITS
    ),
    **_of_rows("workflow", ways("view_workflow")),
    "workflow/<uuid:object_id>/stream/": Page(
        look=ways("view_workflow"), on="workflow", answers=NO_ASGI
    ),
    "workflow/<uuid:object_id>/act/": Page(
        look=ways("view_workflow operate"),
        on="workflow",
        query={"verb": "cancel"},
        acts=tuple(map(_workflow_act, WORKFLOW_VERBS.values())),
    ),
    **_of_rows("endpoint", WEBHOOKS),
    "endpoint/add/": Page(
        look=WEBHOOKS,
        acts=(
            Act(name="create", on="", needs=WEBHOOKS, answers=200,
                body={"url": "https://example.com/new"}),
        ),
    ),
    "endpoint/<int:object_id>/edit/": Page(
        look=WEBHOOKS,
        on="endpoint",
        acts=(
            Act(name="edit", on="endpoint", needs=WEBHOOKS,
                body={"url": "https://example.com/new", "seen": "2026-01-01T00:00:00+00:00"}),
        ),
    ),
    "endpoint/<int:object_id>/act/": Page(
        look=None,
        acts=(
            Act(name="test", on="endpoint", needs=WEBHOOKS, body={"verb": "test"}),
            Act(name="enable", on="disabled endpoint", needs=WEBHOOKS, body={"verb": "enable"}),
            Act(name="disable", on="endpoint", needs=WEBHOOKS, body={"verb": "disable"}),
            Act(name="rotate", on="endpoint", needs=WEBHOOKS, answers=200,
                body={"verb": "rotate"}),
            Act(name="replay", on="endpoint", needs=WEBHOOKS,
                body={"verb": "replay", "hours": "1"}),
            Act(name="delete", on="endpoint", needs=WEBHOOKS,
                body={"verb": "delete", "confirmed": "1"}),
        ),
    ),
    "endpoint/<int:object_id>/redeliver/": Page(
        look=None,
        acts=(
            Act(name="redeliver", on="endpoint", needs=WEBHOOKS, body={"delivery": "$delivery"}),
        ),
    ),
    **_of_rows("operation", ways("view_operation")),
    "operation/start/": Page(
        look=OPERATE,
        query={"verb": "retry", "ids": "$failed"},
        acts=tuple(map(_many, BULK_VERBS.values())),
    ),
    "operation/<uuid:object_id>/stream/": Page(
        look=ways("view_operation"), on="operation", answers=NO_ASGI
    ),
    "operation/<uuid:object_id>/cancel/": Page(
        look=None,
        acts=(
            Act(name="cancel", on="operation", needs=ways("view_operation operate"), body={}),
        ),
    ),
}  # fmt: skip
LOOKING = [
    route for route in sorted(PAGES) if PAGES[route].look and PAGES[route].answers != NO_ASGI
]
"""Where there is a page to look at."""
ACTING = [route for route in sorted(PAGES) if PAGES[route].acts]
"""Where something can be done."""
