"""Enqueue over REST, audited: one task, or many, all or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import ENQUEUE, VIEW_TASKS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Reasoned
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.bodies import Enqueue, Wanted, wanted
from taskqueue.monitoring.read_models.base import about, from_row, json_form
from taskqueue.monitoring.read_models.task import STATUSES
from taskqueue.results.audited_enqueue import enqueue_batches_by_hand, enqueue_by_hand

MOST = 1000
# Where each has options of its own, comparing it with all others would take long.
MOST_COMPARED = 20


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The answer to an enqueue.

    If a task of another type holds the unique key, a user without `view_task` sees only its id.
    """

    id: UUID
    name: str | None
    status: str | None = about(choices=STATUSES)
    created: bool = about("false: another task holds the unique key.")
    updated: bool = about("Whether the arguments of that task were replaced.")
    enqueued_at: datetime | None
    ready_at: datetime | None


def _receipts(wishes: Sequence[Wanted], results: Sequence[Any], user: Any) -> list[Receipt]:
    sees_all = user.has_perm(VIEW_TASKS)
    hidden = dict.fromkeys(("name", "status", "enqueued_at", "ready_at"))
    return [
        from_row(
            Receipt, result, **({} if sees_all or result.name == wish.definition.name else hidden)
        )
        for wish, result in zip(wishes, results, strict=True)
    ]


class EnqueueOne(Reasoned, Enqueue):
    """A task to be enqueued, and why."""


def answer_of_one(view: ApiView, wish: Wanted, reason: str) -> Response:
    """Enqueue it: 201 for a new task, 200 where another holds the unique key."""
    user = view.request.user
    result = enqueue_by_hand(wish.definition, wish.args, wish.kwargs, by=user, reason=reason)
    (shown,) = _receipts([wish], [result], user)
    headers = {"Location": view.address("task", result.id)}
    return Response(json_form(shown), status=201 if result.created else 200, headers=headers)


class EnqueueMany(Reasoned):
    """The tasks, in their order."""

    tasks = serializers.ListField(
        child=Enqueue(), min_length=1, max_length=MOST, help_text="Each as of `tasks/`."
    )


@dataclass(frozen=True, kw_only=True)
class Receipts:
    """The receipts, in the order of the request."""

    results: list[Receipt]


class TaskBulk(ApiView):
    """Many tasks at once."""

    needs = {"POST": (ENQUEUE,)}
    scope = "enqueue"
    tag = "tasks"

    @endpoint(
        "enqueueTasks", answers={200: Receipts, 201: Receipts}, body=EnqueueMany, problems=(409,)
    )
    def post(self, request: Request) -> Response:
        """Enqueue up to 1,000 tasks in one transaction: all or none.

        200 where none is new, since others hold the unique keys.
        """
        wishes = list(map(_wanted, range(MOST), self.parameters["tasks"]))

        def act() -> Response:
            calls = [(each.definition, each.args, each.kwargs) for each in wishes]
            results = enqueue_batches_by_hand(
                calls, _alike(wishes), by=request.user, reason=self.parameters["reason"]
            )
            is_new = any(result.created for result in results)
            shown = json_form(Receipts(results=_receipts(wishes, results, request.user)))
            return Response(shown, status=201 if is_new else 200)

        return self.idempotent(act)


def _wanted(number: int, body: Mapping[str, Any]) -> Wanted:
    try:
        return wanted(body)
    except Problem as problem:
        raise problem.below("tasks", number) from None


def _alike(tasks: Sequence[Wanted]) -> list[list[int]]:
    """Return the places of those that are written together, in the order in which they are.

    Those with unique keys in the order of the keys: two requests with the same ones in different
    orders would wait for each other.
    """
    places = range(len(tasks))
    plain = sorted(
        (place for place in places if tasks[place].unique_key is None),
        key=lambda place: tasks[place].definition.name,
    )
    keyed = sorted(
        (place for place in places if tasks[place].unique_key is not None),
        key=lambda place: (tasks[place].unique_key or "", tasks[place].definition.unique_scope),
    )
    return [*_batches(tasks, plain, compared=MOST_COMPARED), *_batches(tasks, keyed, compared=1)]


def _batches(tasks: Sequence[Wanted], places: Iterable[int], *, compared: int) -> list[list[int]]:
    """Put each place into the first of the last batches that is like it, or into a new one."""
    batches: list[list[int]] = []
    for place in places:
        for batch in batches[-compared:]:
            if _is_alike(tasks[batch[0]], tasks[place]):
                batch.append(place)
                break
        else:
            batches.append([place])
    return batches


def _is_alike(one: Wanted, other: Wanted) -> bool:
    """Whether they are of one type, and have the same options."""
    own, others = one.definition, other.definition
    return own.name == others.name and own.options == others.options
