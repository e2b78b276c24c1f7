"""The progress of a task or workflow for end users: one indexed read.

Neither its name nor its arguments, errors or workers are read at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.core.workflow_states import FINAL_WORKFLOWS, WorkflowStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.statement import fetch
from taskqueue.models import Task
from taskqueue.progress.tokens import Claims, Expired, Unknown
from taskqueue.results import get_result
from taskqueue.results.workflows import get_workflow

CAP = 1000
LONGEST_MESSAGE, LONGEST_RESULT = 200, 10_000
REFERENCE = 8

# Reads at most a thousand entries of the claim's index, at the head of the task's queue.
LOOK_AT_TASK = f"""
    SELECT task.status,
        (
            SELECT lease.progress FROM taskqueue_lease lease
            WHERE lease.task_id = task.id AND lease.status = 'running'
            ORDER BY lease.attempt DESC LIMIT 1
        ),
        (
            SELECT lease.progress_message FROM taskqueue_lease lease
            WHERE lease.task_id = task.id AND lease.status = 'running'
            ORDER BY lease.attempt DESC LIMIT 1
        ),
        (
            SELECT lease.progress_detail FROM taskqueue_lease lease
            WHERE lease.task_id = task.id AND lease.status = 'running'
            ORDER BY lease.attempt DESC LIMIT 1
        ),
        CASE WHEN task.status = 'ready' AND task.route = 0 THEN (
            SELECT COUNT(*)
            FROM (
                SELECT queued.priority, queued.run_after, queued.id
                FROM taskqueue_task queued
                WHERE queued.queue_name = task.queue_name
                    AND queued.status = 'ready' AND queued.route = 0
                ORDER BY queued.queue_name, queued.priority DESC, queued.run_after, queued.id
                LIMIT {CAP + 1}
            ) AS head
            WHERE head.priority > task.priority
                OR head.priority = task.priority
                AND (head.run_after, head.id) < (task.run_after, task.id)
        ) END
    FROM taskqueue_task task
    WHERE task.id = %s
"""  # noqa: S608  (a constant)
LOOK_AT_WORKFLOW = """
    SELECT workflow.status, workflow.members,
        (
            SELECT COALESCE(SUM(step.ended), 0) FROM taskqueue_step step
            WHERE step.workflow_id = workflow.id
        )
    FROM taskqueue_workflow workflow
    WHERE workflow.id = %s
"""
WAITING, RUNNING, SUCCEEDED, FAILED, CANCELLED, GONE = (
    "waiting", "running", "succeeded", "failed", "cancelled", "gone",
)  # fmt: skip
# For an invalid token, or an address that asks too often.
EXPIRED, UNKNOWN, BUSY = "expired", "unknown", "busy"
FINAL = (SUCCEEDED, FAILED, CANCELLED, GONE, EXPIRED, UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class Look:
    """The progress that an end user sees."""

    state: str
    # The state in words.
    text: str
    # None if the body has not reported any.
    percent: float | None = None
    message: str = ""
    # What the body reported in addition to the message.
    detail: Any = None
    # How many tasks are before it in its queue, up to `CAP + 1`; None if it does not wait there.
    position: int | None = None
    # For a workflow: how many of its tasks have ended, and how many are known.
    ended: int | None = None
    total: int | None = None
    # Only if the token says so, and it has succeeded.
    result: Any = None
    redirect: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether it will not change any more."""
        return self.state in FINAL

    @property
    def result_text(self) -> str:
        """Return the result as text, shortened if it is long; empty if there is none."""
        if self.result is None:
            return ""
        is_text = isinstance(self.result, str)
        text = self.result if is_text else json.dumps(self.result, ensure_ascii=False, indent=2)
        return text if len(text) <= LONGEST_RESULT else text[:LONGEST_RESULT] + "…"

    def as_json(self) -> dict[str, Any]:
        """Return the progress for programs; unknown values are left out."""
        fields = {
            "state": self.state, "text": self.text, "is_finished": self.is_finished,
            "percent": self.percent, "message": self.message or None, "detail": self.detail,
            "position": self.position,
            "ended": self.ended, "total": self.total, "result": self.result,
            "result_text": self.result_text or None, "redirect": self.redirect or None,
        }  # fmt: skip
        return {name: value for name, value in fields.items() if value is not None}


def refusal(error: Expired | Unknown) -> Look:
    """Return what is shown instead of a task to somebody who may not see it."""
    if isinstance(error, Expired):
        return Look(state=EXPIRED, text=_("This link has expired."))
    return Look(state=UNKNOWN, text=_("There is nothing to see here."))


def busy() -> Look:
    """Return what is shown to an address that asks too often."""
    return Look(state=BUSY, text=_("Too many requests."))


def look(claims: Claims) -> Look:
    """Return the progress of the task or workflow of a token, in the current language."""
    seen = _look_at_workflow(claims) if claims.is_workflow else _look_at_task(claims)
    if seen.state != SUCCEEDED:
        return seen
    return Look(
        state=seen.state, text=seen.text, percent=100.0, ended=seen.ended, total=seen.total,
        result=_result(claims) if claims.shows_result else None, redirect=claims.redirect,
    )  # fmt: skip


def _result(claims: Claims) -> Any:
    known = get_workflow(claims.id) if claims.is_workflow else get_result(claims.id)
    return known.return_value


def _fetched(statement: str, claims: Claims) -> Any:
    connection = project_connection()
    key = Task._meta.pk.get_db_prep_value(claims.id, connection)
    return fetch(connection, statement, (key,))


def _look_at_task(claims: Claims) -> Look:
    rows = _fetched(LOOK_AT_TASK, claims)
    if not rows:
        return _gone()
    status, percent, message, detail, position = rows[0]
    if status in PENDING:
        return Look(state=WAITING, text=_in_line(position), percent=0.0, position=position)
    if status == TaskStatus.RUNNING:
        said = (message or "")[:LONGEST_MESSAGE]
        return Look(
            state=RUNNING, text=_("Running"), percent=_rounded(percent), message=said,
            detail=None if detail is None else json.loads(detail),
        )  # fmt: skip
    return _ended(status, claims)


def _look_at_workflow(claims: Claims) -> Look:
    rows = _fetched(LOOK_AT_WORKFLOW, claims)
    if not rows:
        return _gone()
    status, total, ended = rows[0]
    counts: dict[str, Any] = {"ended": int(ended), "total": int(total)}
    if WorkflowStatus(status) in FINAL_WORKFLOWS:
        return _ended(status, claims, **counts)
    percent = min(99.0, 100.0 * counts["ended"] / counts["total"]) if total else 0.0
    text = _("Running: %(ended)s of %(total)s parts have finished") % counts
    return Look(state=RUNNING, text=text, percent=_rounded(percent), **counts)


def _rounded(percent: float | None) -> float | None:
    return None if percent is None else round(percent, 1)


def _gone() -> Look:
    return Look(state=GONE, text=_("It is no longer known."))


def _ended(status: str, claims: Claims, **counts: Any) -> Look:
    """Say how it ended; for a failure only give a reference for support requests."""
    if status == SUCCEEDED:
        return Look(state=SUCCEEDED, text=_("Finished"), percent=100.0, **counts)
    if status == CANCELLED:
        return Look(state=CANCELLED, text=_("It was cancelled."), **counts)
    reference = claims.id.hex[-REFERENCE:]
    text = _("It failed. Reference %(reference)s.") % {"reference": reference}
    return Look(state=FAILED, text=text, **counts)


def _in_line(position: int | None) -> str:
    if position is None:
        return _("Waiting")
    if position > CAP:
        return _("Waiting: more than %(count)s are ahead in line") % {"count": f"{CAP:,}"}
    if position == 0:
        return _("Waiting: it is next in line")
    return ngettext(
        "Waiting: %(count)s is ahead in line", "Waiting: %(count)s are ahead in line", position
    ) % {"count": f"{position:,}"}
