"""Task types that the API may enqueue, with a schema of their arguments."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import ENQUEUE
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Anything
from taskqueue.api.problems import Problem
from taskqueue.conf import get_settings
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.argument_schema import argument_schema
from taskqueue.declarations.definition import BaseDefinition, registry


class TaskTypeShown(serializers.Serializer[Any]):
    """A definition with `api=True`; durations are seconds."""

    name = serializers.CharField()
    doc = serializers.CharField(help_text="Its docstring.")
    queue_name = serializers.CharField()
    priority = serializers.IntegerField()
    max_attempts = serializers.IntegerField()
    timeout = serializers.FloatField(allow_null=True, help_text="The time limit of an attempt.")
    deadline = serializers.FloatField(allow_null=True, help_text="The time limit from its enqueue.")
    expires_after = serializers.FloatField(allow_null=True)
    has_unique_key = serializers.BooleanField(help_text="Whether it has a unique key of its own.")
    unique_scope = serializers.CharField(help_text="Types with the same scope share their keys.")
    unique_for = serializers.CharField(help_text="`finished`, `started`, `kept`, or seconds.")
    on_duplicate = serializers.CharField()
    workers = serializers.IntegerField(help_text="The number of workers that each run it.")
    broadcast = serializers.BooleanField()
    sensitive = serializers.ListField(
        child=serializers.CharField(), help_text="Arguments that are never shown again."
    )


class TaskTypeWhole(TaskTypeShown):
    """A definition with a schema of its arguments."""

    arguments = serializers.DictField(
        child=Anything(), help_text="A JSON Schema (2020-12) of `args` and `kwargs`."
    )


class TaskTypes(serializers.Serializer[Any]):
    """All task types."""

    results = TaskTypeShown(many=True)


class TaskTypeList(ApiView):
    """The task types."""

    needs = {"GET": (ENQUEUE,)}
    tag = "task types"
    has_etag = True

    @describe("listTaskTypes", answers={200: TaskTypes})
    def get(self, request: Request) -> Response:
        """The definitions with `api=True`, by name."""
        self.validated_query(request)
        return self.shown(request, TaskTypes({"results": map(_shown, exposed())}).data)


class TaskTypeDetail(ApiView):
    """One task type."""

    needs = {"GET": (ENQUEUE,)}
    tag = "task types"
    has_etag = True

    @describe("getTaskType", answers={200: TaskTypeWhole}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """A definition, with a JSON Schema of its arguments."""
        self.validated_query(request)
        definition = registry.find(name)
        if definition is None or not definition.options.api:
            hint = did_you_mean(name, [each.name for each in exposed()])
            detail = f"No task type that the API may enqueue is named {name!r}.{hint}"
            raise Problem(404, "task_type_not_found", detail)
        arguments = argument_schema(definition)
        return self.shown(
            request, TaskTypeWhole({**_shown(definition), "arguments": arguments}).data
        )


def exposed() -> list[BaseDefinition[Any, Any]]:
    """The definitions that the API may enqueue, by name."""
    return [each for each in registry.all() if each.options.api]


def _shown(definition: BaseDefinition[Any, Any]) -> dict[str, Any]:
    options = definition.options
    unique_for = options.unique_for
    if isinstance(unique_for, timedelta):
        unique_for = f"{unique_for.total_seconds():g}"
    return {
        "name": definition.name,
        "doc": inspect.cleandoc(definition.__doc__ or ""),
        "queue_name": options.queue_name,
        "priority": options.priority,
        "max_attempts": options.max_attempts or get_settings().MAX_ATTEMPTS,
        "timeout": _seconds(options.timeout),
        "deadline": _seconds(options.deadline),
        "expires_after": _seconds(options.expires_after),
        "has_unique_key": options.unique_key is not None,
        "unique_scope": definition.unique_scope,
        "unique_for": unique_for,
        "on_duplicate": options.on_duplicate,
        "workers": options.workers,
        "broadcast": options.broadcast,
        "sensitive": sorted(options.sensitive),
    }


def _seconds(value: Any) -> float | None:
    """Return a duration in seconds; None for a fixed moment."""
    if value is None or isinstance(value, datetime):
        return None
    return value.total_seconds() if isinstance(value, timedelta) else float(value)
