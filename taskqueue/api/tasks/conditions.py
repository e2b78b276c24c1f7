"""The task of an address, and what If-Match says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import ENQUEUE
from taskqueue.api.addresses import address
from taskqueue.api.base import ApiView
from taskqueue.api.etags import etag_of, part_of, seen_as
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.bodies import is_exposed
from taskqueue.api.tasks.rows import TaskJSON
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.control.mutable_options import COLUMNS as TERM_COLUMNS
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.models import Task
from taskqueue.monitoring.read_models.task import shown_task
from taskqueue.results.reading import row_of

MAKING = [verb.name for verb in TASK_VERBS.values() if ENQUEUE in verb.permissions]
"""Verbs that make another task of the type, which only types marked `api=True` allow."""
STEPS = (
    "status", "attempt", "attempts_before_retry", "args", "kwargs", "run_after", "deadline_at",
    "expires_at", "enqueued_at", "finished_at", "options", *TERM_COLUMNS,
)  # fmt: skip
"""Columns that If-Match compares: the progress of a body changes by itself, and is left out."""


class TaskView(ApiView):
    """An address of one task."""

    tag = "tasks"


def steps_of(task: Task) -> str:
    """The part of the ETag that stands for changes by people and workers."""
    return part_of([getattr(task, name) for name in STEPS])


def id_of(text: str) -> UUID:
    """The id. Raises 404 for what is none: no task has it."""
    try:
        return UUID(text)
    except ValueError:
        raise Problem(404, "task_not_found", f"{text!r} is not the id of a task.") from None


def seen_by(request: Request) -> Seen:
    """Return what If-Match says of the task, as verbs take it."""
    return seen_as(request, steps_of)


def answer(request: Request, task: Task, *, status: int = 200, is_new: bool = False) -> Response:
    """The whole task, with its ETag; with its address where it is new."""
    shown = shown_task(task, request.user)
    if not is_exposed(task.name):
        shown = replace(shown, can=[verb for verb in shown.can if verb not in MAKING])
    value = TaskJSON(shown).data
    headers = {"ETag": etag_of(value, part=steps_of(task))}
    if is_new:
        headers["Location"] = address(request, "task", task.id)
    return Response(value, status=status, headers=headers)


def answer_now(request: Request, task_id: UUID, **more: Any) -> Response:
    """The same, of the task as it is by now. Raises `TaskDoesNotExist`."""
    return answer(request, row_of(task_id), **more)
