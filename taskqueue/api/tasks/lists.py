"""List tasks, and enqueue one task or many (all or none), with an audit entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from taskqueue.access.permissions import ENQUEUE, VIEW_TASKS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.describing import serializer_for
from taskqueue.api.fields import Moment, Reasoned
from taskqueue.api.tasks.bodies import Calls, Enqueue, Wanted, wanted
from taskqueue.api.tasks.filters import Page, which_of
from taskqueue.engine.connections import database_alias
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import about, from_row, json_form
from taskqueue.monitoring.read_models.task import (
    STATUSES,
    ListedTask,
    TaskSummary,
    task_as,
    task_columns,
)
from taskqueue.monitoring.searching.finding import find
from taskqueue.monitoring.searching.sorting import Sorting, find_sorted
from taskqueue.results.by_hand import enqueue_batches_by_hand, enqueue_by_hand

MOST = 1000
# If each task has its own options, comparing it with all others would take long.
MOST_COMPARED = 20
ListedTaskJSON = serializer_for(ListedTask, optional=frozenset({"args", "kwargs"}))


class TaskPage(serializers.Serializer[Any]):
    """A page of tasks, ordered by `ordering`; by default by end if all ended, else newest first."""

    results = ListedTaskJSON(many=True)
    next = serializers.URLField(allow_null=True, help_text="The page of older tasks.")
    previous = serializers.URLField(allow_null=True, help_text="The page of newer tasks.")
    is_cut_short = serializers.BooleanField(
        help_text="Whether the search stopped before the page was full, having read enough rows: "
        "continue with `next`."
    )
    searched_to = Moment(allow_null=True, help_text="About how far back it has searched then.")
    sorted_among = serializers.IntegerField(
        allow_null=True,
        help_text="How many of the matching tasks were sorted, if others may match too: with an"
        " `ordering` that no index has.",
    )
    holders = ListedTaskJSON(
        many=True,
        help_text="The holders of a unique key in the filter, if the search stopped before them.",
    )


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


@dataclass(frozen=True, kw_only=True)
class Receipts:
    """The receipts, in the order of the request."""

    results: list[Receipt]


class EnqueueOne(Reasoned, Enqueue):
    """A task to be enqueued, and why."""


class EnqueueMany(Reasoned):
    """The tasks, in their order."""

    tasks = Calls(child=Enqueue(), min_length=1, max_length=MOST, help_text="Each as of `tasks/`.")


class TaskList(ApiView):
    """Tasks."""

    needs = {"GET": (VIEW_TASKS,), "POST": (ENQUEUE,)}
    scope = "enqueue"
    tag = "tasks"
    has_etag = True
    located = (200, 201)

    @endpoint("listTasks", answers={200: TaskPage}, query=Page)
    def get(self, request: Request) -> Response:
        """Tasks that match, by pages; a search without an index reads a bounded number of rows."""
        query = self.parameters
        model = ListedTask if "include" in query else TaskSummary
        which, sorting = which_of(query, request.user), query.get("ordering")
        place: dict[str, Any] = {
            "tasks": Task.objects.using(database_alias()).only(*task_columns(model)),
            "before": query.get("before", ""),
            "after": query.get("after", ""),
            "limit": query["limit"],
        }
        if sorting is None:
            found = find(which, **place)
        else:
            found = find_sorted(which, Sorting.of(sorting), **place)

        def shown(tasks: Sequence[Task]) -> list[TaskSummary]:
            return [task_as(model, task, request.user) for task in tasks]

        page = {
            "results": shown(found.tasks),
            "next": _page_url(request, "before", found.older),
            "previous": _page_url(request, "after", found.newer),
            "is_cut_short": found.is_cut_short,
            "searched_to": found.searched_to if found.is_cut_short else None,
            "sorted_among": found.sorted_among,
            "holders": shown(found.holders),
        }
        return self.shown(page)

    @endpoint("enqueueTask", answers={200: Receipt, 201: Receipt}, body=EnqueueOne, problems=(409,))
    def post(self, request: Request) -> Response:
        """Enqueue a task of a type marked `api=True`.

        201 with its address; 200 where another task holds the unique key; with
        `on_duplicate` "raise" that is a 409 which names it.
        """
        wish, reason = wanted(self.parameters), self.parameters["reason"]

        def act() -> Response:
            result = enqueue_by_hand(
                wish.definition, wish.args, wish.kwargs, by=request.user, reason=reason
            )
            (receipt,) = _receipts([wish], [result], request.user)
            answer = Response(json_form(receipt), status=201 if result.created else 200)
            answer["Location"] = self.address("task", result.id)
            return answer

        return self.idempotent(act)


def _page_url(request: Request, parameter: str, cursor: str) -> str | None:
    if not cursor:
        return None
    url = request.build_absolute_uri()
    for name in ("before", "after"):
        url = remove_query_param(url, name)
    return replace_query_param(url, parameter, cursor)


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

        200 if no task is new because others hold the unique keys. `errors` lists each invalid task
        by its place, with its errors.
        """
        wishes: list[Wanted] = self.parameters["tasks"]

        def act() -> Response:
            calls = [(each.definition, each.args, each.kwargs) for each in wishes]
            results = enqueue_batches_by_hand(
                calls, _alike(wishes), by=request.user, reason=self.parameters["reason"]
            )
            is_new = any(result.created for result in results)
            shown = json_form(Receipts(results=_receipts(wishes, results, request.user)))
            return Response(shown, status=201 if is_new else 200)

        return self.idempotent(act)


def _receipts(wishes: Sequence[Wanted], results: Sequence[Any], user: Any) -> list[Receipt]:
    sees_all = user.has_perm(VIEW_TASKS)
    hidden = dict.fromkeys(("name", "status", "enqueued_at", "ready_at"))
    return [
        from_row(
            Receipt, result, **({} if sees_all or result.name == wish.definition.name else hidden)
        )
        for wish, result in zip(wishes, results, strict=True)
    ]


def _alike(tasks: Sequence[Wanted]) -> list[list[int]]:
    """Return the places of the tasks that are written together, in the order of their writes.

    Tasks with unique keys are in the order of the keys: otherwise two requests with the same keys
    in different orders would deadlock.
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
    """Put each place into the first matching batch of the last ones, or into a new batch."""
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
    """Return whether both have the same type and the same options."""
    own, others = one.definition, other.definition
    is_same = own.name == others.name and own.options == others.options
    return is_same and own.given == others.given
