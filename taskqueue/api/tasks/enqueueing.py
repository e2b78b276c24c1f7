"""Enqueue over REST: one task, audited, and told what came of its unique key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.addresses import address
from taskqueue.api.fields import Text
from taskqueue.api.tasks.bodies import Enqueue, Wanted
from taskqueue.api.tasks.rows import Receipt, ReceiptJSON, receipt
from taskqueue.exceptions import DuplicateTask
from taskqueue.results.audited_enqueue import enqueue_by_hand


class EnqueueOne(Enqueue):
    """A task to be enqueued, and why."""

    reason = Text(
        required=False, default="", allow_blank=True, max_length=1000, help_text="For the audit."
    )


def answer_of_one(request: Request, each: Wanted, reason: str) -> Response:
    """The receipt: 201 for a new task, 200 where another holds the unique key."""
    with telling_no_status():
        result = enqueue_by_hand(
            each.definition, each.args, each.kwargs, by=request.user, reason=reason
        )
    told = receipts([each.definition.name], [result], request.user)[0]
    headers = {"Location": address(request, "task", result.id)}
    return Response(ReceiptJSON(told).data, status=201 if result.created else 200, headers=headers)


@contextmanager
def telling_no_status() -> Iterator[None]:
    """Who holds the key of a duplicate that raises is told by its id, and no more."""
    try:
        yield
    except DuplicateTask as error:
        if error.result is None:
            raise
        holder = getattr(error.result, "id", error.result)
        text = f"Task {holder} holds the unique key."
        raise DuplicateTask(text, error.result, place=error.place) from None


def receipts(names: Sequence[str], results: Sequence[Any], user: Any) -> list[Receipt]:
    """Describe what became of tasks of these names, in the order of the handles.

    Who holds a unique key may be of another type than the one that was to be enqueued: who may
    view no tasks is told its id alone.
    """
    sees_all = user.has_perm(VIEW_TASKS)
    return [
        receipt(result, is_visible=sees_all or result.name == name)
        for name, result in zip(names, results, strict=True)
    ]
