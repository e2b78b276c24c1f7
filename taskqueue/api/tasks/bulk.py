"""Enqueue many tasks at once: all or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import ENQUEUE
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Reasoned
from taskqueue.api.tasks.bodies import Enqueue, Wanted, wanted
from taskqueue.api.tasks.enqueueing import receipts, telling_no_status
from taskqueue.api.tasks.rows import Receipt, ReceiptJSON
from taskqueue.results.audited_enqueue import enqueue_batches_by_hand

MOST = 1000
MOST_COMPARED = 20
"""Where each has options of its own, comparing it with all others would take long."""


class EnqueueMany(Reasoned):
    """The tasks, in their order."""

    tasks = serializers.ListField(
        child=Enqueue(), min_length=1, max_length=MOST, help_text="Each as of `tasks/`."
    )


class Receipts(serializers.Serializer[Any]):
    """The receipts, in the order of the request."""

    results = ReceiptJSON(many=True)


class TaskBulk(ApiView):
    """Many tasks at once."""

    needs = {"POST": (ENQUEUE,)}
    scope = "enqueue"
    tag = "tasks"

    @describe(
        "enqueueTasks", answers={200: Receipts, 201: Receipts}, body=EnqueueMany, problems=(409,)
    )
    def post(self, request: Request) -> Response:
        """Enqueue up to 1,000 tasks in one transaction: all or none.

        200 where none is new, since others hold the unique keys.
        """
        self.validated_query(request)
        given = self.validated_body(request, EnqueueMany)
        each_wanted = _wanted(given["tasks"])

        def act() -> Response:
            results = _enqueued(each_wanted, by=request.user, reason=given["reason"])
            is_new = any(each.created for each in results)
            shown = Receipts({"results": results}).data
            return Response(shown, status=201 if is_new else 200)

        return self.idempotent(request, act)


def _wanted(tasks: Sequence[Mapping[str, Any]]) -> list[Wanted]:
    """Each, or the problem of the first that cannot be."""
    return [wanted(each, at=("tasks", number)) for number, each in enumerate(tasks)]


def _enqueued(tasks: Sequence[Wanted], *, by: Any, reason: str) -> list[Receipt]:
    """Those of one type and the same options by one statement; the receipts in their order."""
    wishes = [(each.definition, each.args, each.kwargs) for each in tasks]
    with telling_no_status():
        results = enqueue_batches_by_hand(wishes, _alike(tasks), by=by, reason=reason)
    return receipts([each.definition.name for each in tasks], results, by)


def _alike(tasks: Sequence[Wanted]) -> list[list[int]]:
    """The places of those that are written together, in the order in which they are.

    Those with unique keys in the order of the keys: two requests with the same ones in different
    orders would wait for each other.
    """
    plain = [number for number, each in enumerate(tasks) if each.unique_key is None]
    keyed = [number for number, each in enumerate(tasks) if each.unique_key is not None]
    keyed.sort(
        key=lambda number: (tasks[number].unique_key or "", tasks[number].definition.unique_scope)
    )
    runs: list[list[int]] = []
    for number in keyed:
        if runs and _is_alike(tasks[runs[-1][0]], tasks[number]):
            runs[-1].append(number)
        else:
            runs.append([number])
    return [*_by_type(tasks, plain), *runs]


def _by_type(tasks: Sequence[Wanted], numbers: Sequence[int]) -> list[list[int]]:
    groups: dict[str, list[list[int]]] = {}
    for number in numbers:
        of_type = groups.setdefault(tasks[number].definition.name, [])
        for alike in of_type[-MOST_COMPARED:]:
            if _is_alike(tasks[alike[0]], tasks[number]):
                alike.append(number)
                break
        else:
            of_type.append([number])
    return [alike for of_type in groups.values() for alike in of_type]


def _is_alike(one: Wanted, other: Wanted) -> bool:
    """Whether they are of one type, and have the same options."""
    own, others = one.definition, other.definition
    return own.name == others.name and own.options == others.options
