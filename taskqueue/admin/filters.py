"""Filters whose choices cost no look at a large table."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from taskqueue.engine.connections import database_alias
from taskqueue.engine.wedged import wedged
from taskqueue.models import Queue

MOST = 100


class QueueFilter(admin.SimpleListFilter):
    """By queue: those that have a row, not those that a DISTINCT over all tasks would find."""

    title = "queue"
    parameter_name = "queue_name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        queues = Queue.objects.using(database_alias()).order_by("name")
        return [(name, name) for name in queues.values_list("name", flat=True)[:MOST]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(queue_name=self.value()) if self.value() else queryset


class WedgedFilter(admin.SimpleListFilter):
    """Those that run and are marked; found through the index of what runs, however much has run."""

    title = "wedged"
    parameter_name = "wedged"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "yes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() != "yes":
            return queryset
        return queryset.filter(pk__in=list(wedged().values_list("pk", flat=True)[:MOST]))
