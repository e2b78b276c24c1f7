"""The list of tasks, and enqueueing one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from taskqueue.access.permissions import ENQUEUE, VIEW_TASKS
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Moment
from taskqueue.api.tasks.bodies import wanted
from taskqueue.api.tasks.enqueueing import EnqueueOne, answer_of_one
from taskqueue.api.tasks.filters import Page, which_of
from taskqueue.api.tasks.rows import ListedTaskJSON, ReceiptJSON
from taskqueue.engine.connections import database_alias
from taskqueue.models import Task
from taskqueue.monitoring.read_models.task import (
    ListedTask,
    TaskSummary,
    task_columns,
    task_summary,
)
from taskqueue.monitoring.read_models.task import with_arguments as show_with_arguments
from taskqueue.monitoring.searching import find


class TaskPage(serializers.Serializer[Any]):
    """A page of tasks, newest first; by their end where all that fit have ended."""

    results = ListedTaskJSON(many=True)
    next = serializers.URLField(allow_null=True, help_text="What is older.")
    previous = serializers.URLField(allow_null=True, help_text="What is newer.")
    is_cut_short = serializers.BooleanField(
        help_text="The page has fewer rows than it might, since enough had been read: go on "
        "with `next`."
    )
    searched_to = Moment(allow_null=True, help_text="About how far it has looked then.")
    holders = ListedTaskJSON(
        many=True,
        help_text="Who holds a key that is looked for, where the search was cut short before it.",
    )


class TaskList(ApiView):
    """Tasks."""

    needs = {"GET": (VIEW_TASKS,), "POST": (ENQUEUE,)}
    scope = "enqueue"
    tag = "tasks"
    has_etag = True
    located = (200, 201)

    @describe("listTasks", answers={200: TaskPage}, query=Page)
    def get(self, request: Request) -> Response:
        """Tasks that fit, by pages; what no index has is looked for in bounded steps."""
        given = self.validated_query(request, Page)
        with_arguments = "include" in given
        model = ListedTask if with_arguments else TaskSummary
        found = find(
            which_of(given, request.user),
            tasks=Task.objects.using(database_alias()).only(*task_columns(model)),
            before=given.get("before", ""),
            after=given.get("after", ""),
            limit=given["limit"],
        )

        def shown(tasks: Sequence[Task]) -> list[TaskSummary]:
            if not with_arguments:
                return list(map(task_summary, tasks))
            return [show_with_arguments(ListedTask, task, request.user) for task in tasks]

        page = TaskPage(
            {
                "results": shown(found.tasks),
                "next": _page_url(request, "before", found.older),
                "previous": _page_url(request, "after", found.newer),
                "is_cut_short": found.is_cut_short,
                "searched_to": found.searched_to if found.is_cut_short else None,
                "holders": shown(found.holders),
            }
        )
        return self.shown(request, page.data)

    @describe(
        "enqueueTask",
        answers={200: ReceiptJSON, 201: ReceiptJSON},
        body=EnqueueOne,
        problems=(409,),
    )
    def post(self, request: Request) -> Response:
        """Enqueue a task of a type marked `api=True`.

        201 with its address; 200 where another task holds the unique key; with
        `on_duplicate` "raise" that is a 409 which names it.
        """
        self.validated_query(request)
        given = self.validated_body(request, EnqueueOne)
        each = wanted(given)
        return self.once(request, lambda: answer_of_one(request, each, given["reason"]))


def _page_url(request: Request, parameter: str, cursor: str) -> str | None:
    if not cursor:
        return None
    url = request.build_absolute_uri()
    for name in ("before", "after"):
        url = remove_query_param(url, name)
    return replace_query_param(url, parameter, cursor)
