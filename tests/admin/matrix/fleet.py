"""The part of the table about the fleet: workers, queues, limits, alerts and endpoints."""

from __future__ import annotations

from tests.admin.matrix.kinds import NO_ASGI, OPERATE, VIEW_TASK, Act, Page, of_rows, ways

MANAGE_ALERTS = ways("view_alertrule manage_alerts")
WEBHOOKS = ways("manage_webhooks")
PAUSE = {"verb": "pause", "minutes": "5", "reason": "why"}
PAGES: dict[str, Page] = {
    "dashboard/": Page(look=VIEW_TASK),
    "dashboard/stream/": Page(look=VIEW_TASK, answers=NO_ASGI),
    "dashboard/doctor/": Page(
        look=ways("view_task view_worker"),
        acts=(Act(name="examine", on="", needs=ways("view_task view_worker operate"), body={}),),
    ),
    "failure/": Page(look=VIEW_TASK),
    "performance/": Page(look=ways("view_rollup")),
    **of_rows("lease", ways("view_lease")),
    "lease/gantt/": Page(look=ways("view_lease view_task")),
    **of_rows("tasklog", ways("view_tasklog")),
    **of_rows("occurrence", ways("view_occurrence")),
    **of_rows("audit", ways("view_audit")),
    **of_rows("worker", ways("view_worker")),
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
    **of_rows("queue", ways("view_queue")),
    "queue/named/": Page(look=ways("view_queue"), query={"name": "unseen"}),
    "queue/groups/": Page(
        look=VIEW_TASK,
        acts=(
            Act(name="fire", on="", needs=OPERATE,
                body={"name": "plain", "group": "42", "reason": "why"}),
        ),
    ),
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
    **of_rows("limit", ways("view_limit")),
    "limit/<int:object_id>/act/": Page(
        look=None,
        acts=(
            Act(name="set", on="limit", needs=ways("control_queues"),
                body={"verb": "set", "concurrency": "3", "seen": "2/////"}),
            Act(name="reset", on="changed limit", needs=ways("control_queues"),
                body={"verb": "reset", "seen": "2///1//"}),
        ),
    ),
    **of_rows("incident", ways("view_incident")),
    "incident/<int:object_id>/act/": Page(
        look=None,
        acts=(
            Act(name="acknowledge", on="incident", needs=ways("view_incident operate"),
                body={"verb": "acknowledge", "reason": "why"}),
        ),
    ),
    **of_rows("alertrule", ways("view_alertrule")),
    "alertrule/add/": Page(look=MANAGE_ALERTS, answers=302),
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
    **of_rows("endpoint", WEBHOOKS),
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
}  # fmt: skip
