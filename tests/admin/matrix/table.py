"""The table: for each route who may look, and what may be posted by whom."""

from __future__ import annotations

import json
from typing import Any

from taskqueue.admin.tasks.acts import BUTTONS
from taskqueue.admin.tasks.forms import FORMS as EDITED
from taskqueue.engine.control.task_verbs import BULK_VERBS, TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS, WorkflowVerb
from tests.admin.matrix.fleet import PAGES as FLEET
from tests.admin.matrix.kinds import NO_ASGI, OPERATE, VIEW_TASK, Act, Page, of_rows, ways
from tests.admin.schedule_rows import filled
from tests.sample.tasks import echo
from tests.verb_needs import MAKING, NEEDS, row_for


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
"""The values of the forms of these verbs."""
TASK_ACTS = (
    *(_task_act(verb, row_for(verb), NEEDS["task", verb.name]) for verb in BUTTONS.values()),
    _task_act(BUTTONS["cancel"], "running", "stop"),
)
TASK_EDITS = tuple(_task_edit(TASK_VERBS[name]) for name in EDITED)
EDIT_SCHEDULES = ways("edit_schedules")
MAKE_SCHEDULES = ways(MAKING)
CAN_SEE_SCHEDULES = ways("view_schedule", "edit_schedules")
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
PAGES: dict[str, Page] = {
    **FLEET,
    **of_rows("schedule", CAN_SEE_SCHEDULES),
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
    **of_rows("task", VIEW_TASK),
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
    **of_rows("workflow", ways("view_workflow")),
    "workflow/<uuid:object_id>/stream/": Page(
        look=ways("view_workflow"), on="workflow", answers=NO_ASGI
    ),
    "workflow/<uuid:object_id>/act/": Page(
        look=ways("view_workflow operate"),
        on="workflow",
        query={"verb": "cancel"},
        acts=tuple(map(_workflow_act, WORKFLOW_VERBS.values())),
    ),
    **of_rows("operation", ways("view_operation")),
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
