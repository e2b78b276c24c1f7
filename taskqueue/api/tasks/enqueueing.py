"""Enqueue over REST: one task, audited, and told what came of its unique key."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.api.addresses import address
from taskqueue.api.fields import Text
from taskqueue.api.tasks.bodies import Enqueue, Wanted
from taskqueue.api.tasks.rows import receipt
from taskqueue.results import get_result
from taskqueue.results.by_hand import enqueue_by_hand


class EnqueueOne(Enqueue):
    """A task to be enqueued, and why."""

    reason = Text(
        required=False, default="", allow_blank=True, max_length=1000, help_text="For the audit."
    )


def answer_of_one(request: Request, each: Wanted, reason: str) -> Response:
    """The receipt: 201 for a new task, 200 where another holds the unique key."""
    result = enqueue_by_hand(
        each.definition, each.args, each.kwargs, by=request.user, reason=reason
    )
    return Response(
        receipt(result, name=name_of(result, each)),
        status=201 if result.created else 200,
        headers={"Location": address(request, "task", result.id)},
    )


def name_of(result: Any, each: Wanted) -> str:
    """The task's name: who holds a unique key may be of another type."""
    return each.definition.name if result.created else str(get_result(result.id).name)
