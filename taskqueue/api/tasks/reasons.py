"""Why a task has its status, as far as the user may know."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import (
    VIEW_AUDITS,
    VIEW_LEASES,
    VIEW_QUEUES,
    VIEW_TASKS,
    VIEW_WORKERS,
)
from taskqueue.api.access import has_all
from taskqueue.api.base import ApiView, endpoint
from taskqueue.engine.control.locking import id_of
from taskqueue.monitoring.read_models.base import about, json_form
from taskqueue.monitoring.read_models.task import STATUSES
from taskqueue.monitoring.why import Reason, why
from taskqueue.results.reading import row_of


class Redaction(NamedTuple):
    """The part of a reason that users without certain permissions see."""

    # The permissions that are all needed to see everything.
    needs: tuple[str, ...]
    # Replaces the sentence; empty: the remaining values have a sentence of their own.
    message: str = ""
    # Fields that are the task's own.
    is_kept: frozenset[str] = frozenset()


# Fields that are hidden, and the values in their place.
HIDDEN: dict[str, Any] = {"subject": "", "moment": None, "details": {}}
MOMENT, SUBJECT = frozenset({"moment"}), frozenset({"subject"})
# By code; all other reasons are the task's own.
REDACTIONS: dict[str, Redaction] = {
    "retry_due": Redaction((VIEW_LEASES,), is_kept=MOMENT),
    "queue_paused": Redaction((VIEW_QUEUES,), is_kept=SUBJECT),
    "workers_absent": Redaction(
        (VIEW_WORKERS,), "It waits for certain workers that are not running."
    ),
    "worker_trouble": Redaction((VIEW_WORKERS,), "A worker of its queue cannot work."),
    "slots_busy": Redaction(
        (VIEW_WORKERS,), "All slots of the workers of its queue are busy.", SUBJECT
    ),
    "too_few_workers": Redaction(
        (VIEW_WORKERS,), "It needs more workers of its queue than are running.", SUBJECT
    ),
    "worker_waits": Redaction(
        (VIEW_LEASES,), "A worker that has tried it lets other workers go first."
    ),
    "running": Redaction((VIEW_LEASES,), "A worker is running it."),
    "claimed": Redaction((VIEW_LEASES,), "A worker has claimed it."),
    "lease_over": Redaction((VIEW_LEASES,), "The lease of its worker has expired."),
    "worker_lost": Redaction((VIEW_LEASES, VIEW_WORKERS), "Its worker sends no heartbeat."),
    "stop_requested": Redaction((VIEW_LEASES,), "It was asked to stop."),
    "wedged": Redaction(
        (VIEW_LEASES,), "It has produced no output for far longer than similar tasks."
    ),
    # An attempt or the audit says who did it.
    "cancelled": Redaction((VIEW_LEASES, VIEW_AUDITS), is_kept=MOMENT),
}


def visible_reason(reason: Reason, user: Any) -> dict[str, Any]:
    """Return the reason as this user may see it."""
    redaction = REDACTIONS.get(reason.code)
    if redaction is None or has_all(user, redaction.needs):
        return reason.as_dict()
    hidden = {name: value for name, value in HIDDEN.items() if name not in redaction.is_kept}
    bare = replace(reason, **hidden)
    if not redaction.message:
        return bare.as_dict()
    return {"code": bare.code, "message": redaction.message, **asdict(bare)}


@dataclass(frozen=True, kw_only=True)
class ReasonShown:
    """One reason."""

    code: str = about("For programs: it stays as it is.")
    message: str = about("A sentence for people.")
    subject: str = about("The queue, worker, type, person or error meant.")
    moment: datetime | None
    details: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reasons:
    """The reasons for the status of a task."""

    id: UUID
    status: str = about(choices=STATUSES)
    reasons: list[ReasonShown]


class TaskWhy(ApiView):
    """Why it stands where it stands."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "tasks"

    @endpoint("explainTask", answers={200: Reasons}, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """Explain why it waits, which worker holds it and until when, or how it ended.

        What is told of workers, attempts and pauses takes the permission to view these; without
        it, `code` and a `message` that names nobody remain.
        """
        task = row_of(id_of(task_id))
        reasons = [ReasonShown(**visible_reason(each, request.user)) for each in why(task)]
        return Response(json_form(Reasons(id=task.id, status=task.status, reasons=reasons)))
