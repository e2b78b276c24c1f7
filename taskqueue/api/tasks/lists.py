"""The list of tasks, and enqueueing one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from taskqueue.access.permissions import ENQUEUE, VIEW_TASKS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Moment
from taskqueue.api.serializing import serializer_for
from taskqueue.api.tasks.bodies import wanted
from taskqueue.api.tasks.enqueueing import EnqueueOne, Receipt, answer_of_one
from taskqueue.api.tasks.filters import Page, which_of
from taskqueue.engine.connections import database_alias
from taskqueue.models import Task
from taskqueue.monitoring.read_models.task import ListedTask, TaskSummary, task_as, task_columns
from taskqueue.monitoring.searching import find

ListedTaskJSON = serializer_for(ListedTask, optional=frozenset({"args", "kwargs"}))


class TaskPage(serializers.Serializer[Any]):
    """A page of tasks, the newest first; by their end if the filter is for finished tasks."""

    results = ListedTaskJSON(many=True)
    next = serializers.URLField(allow_null=True, help_text="The page of older tasks.")
    previous = serializers.URLField(allow_null=True, help_text="The page of newer tasks.")
    is_cut_short = serializers.BooleanField(
        help_text="Whether the search stopped before the page was full, having read enough rows: "
        "continue with `next`."
    )
    searched_to = Moment(allow_null=True, help_text="About how far back it has searched then.")
    holders = ListedTaskJSON(
        many=True,
        help_text="The holders of a unique key in the filter, if the search stopped before them.",
    )


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
        found = find(
            which_of(query, request.user),
            tasks=Task.objects.using(database_alias()).only(*task_columns(model)),
            before=query.get("before", ""),
            after=query.get("after", ""),
            limit=query["limit"],
        )

        def shown(tasks: Sequence[Task]) -> list[TaskSummary]:
            return [task_as(model, task, request.user) for task in tasks]

        page = {
            "results": shown(found.tasks),
            "next": _page_url(request, "before", found.older),
            "previous": _page_url(request, "after", found.newer),
            "is_cut_short": found.is_cut_short,
            "searched_to": found.searched_to if found.is_cut_short else None,
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
        return self.idempotent(lambda: answer_of_one(self, wish, reason))


def _page_url(request: Request, parameter: str, cursor: str) -> str | None:
    if not cursor:
        return None
    url = request.build_absolute_uri()
    for name in ("before", "after"):
        url = remove_query_param(url, name)
    return replace_query_param(url, parameter, cursor)
