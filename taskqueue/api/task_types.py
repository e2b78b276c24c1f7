"""Task types that the API may enqueue, with a schema of their arguments."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import ENQUEUE
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.bodies import AnyDefinition, exposed_definitions
from taskqueue.conf import get_settings
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.argument_schema import argument_schema
from taskqueue.declarations.definition import registry
from taskqueue.declarations.placement import declared_limits, numbers_of
from taskqueue.monitoring.read_models.base import about, from_row


@dataclass(frozen=True, kw_only=True)
class TaskTypeShown:
    """A definition with `api=True`; durations are seconds."""

    name: str
    doc: str = about("Its docstring.")
    queue_name: str
    priority: int
    max_attempts: int
    timeout: timedelta | None = about("The time limit of an attempt.")
    deadline: timedelta | None = about("The time limit from its enqueue.")
    expires_after: timedelta | None
    has_unique_key: bool = about("Whether it has a unique key of its own.")
    unique_scope: str = about("Types with the same scope share their keys.")
    unique_for: str = about("`finished`, `started`, `kept`, or seconds.")
    unique_per: str | None = about("`minute`, `hour`, `day`, `week`, or seconds.")
    on_duplicate: str
    debounce: float | None = about("Seconds without a call after which the last one runs.")
    throttle: str | None = about("Tasks in a window of time, such as `1/h`; others are dropped.")
    capacity: int | None = about("The number of unfinished tasks, in all or with a key.")
    limits: list[str] = about("Limits of its tasks by name, such as `stripe: concurrency 20`.")
    is_fair: bool = about("Whether its tasks share their queue between tenants.")
    is_sequence: bool = about("Whether its tasks of one key run one after another.")
    requires: list[str] = about("The tags that a worker must have.")
    workers: int = about("The number of workers that each run it.")
    broadcast: bool
    sensitive: list[str] = about("Arguments that are never shown again.")


@dataclass(frozen=True, kw_only=True)
class TaskTypeWhole(TaskTypeShown):
    """A definition with a schema of its arguments."""

    arguments: dict[str, Any] = about("A JSON Schema (2020-12) of `args` and `kwargs`.")


@dataclass(frozen=True, kw_only=True)
class TaskTypes:
    """All task types."""

    results: list[TaskTypeShown]


class TaskTypeList(ApiView):
    """The task types."""

    needs = {"GET": (ENQUEUE,)}
    tag = "task types"
    has_etag = True

    @endpoint("listTaskTypes", answers={200: TaskTypes})
    def get(self, request: Request) -> Response:
        """The definitions with `api=True`, by name."""
        results = [_shown(TaskTypeShown, definition) for definition in exposed_definitions()]
        return self.shown(TaskTypes(results=results))


class TaskTypeDetail(ApiView):
    """One task type."""

    needs = {"GET": (ENQUEUE,)}
    tag = "task types"
    has_etag = True

    @endpoint("getTaskType", answers={200: TaskTypeWhole}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """A definition, with a JSON Schema of its arguments."""
        definition = registry.find(name)
        if definition is None or not definition.options.api:
            hint = did_you_mean(name, [known.name for known in exposed_definitions()])
            detail = f"No task type that the API may enqueue is named {name!r}.{hint}"
            raise Problem(404, "task_type_not_found", detail)
        return self.shown(_shown(TaskTypeWhole, definition, arguments=argument_schema(definition)))


T = TypeVar("T", bound=TaskTypeShown)


def _shown(model: type[T], definition: AnyDefinition, **more: Any) -> T:
    options = definition.options
    debounce, throttle, capacity = options.debounce, options.throttle, options.capacity
    limits, declared = definition.limits, declared_limits(definition.limits, definition.name)
    return from_row(
        model,
        options,
        name=definition.name,
        doc=inspect.cleandoc(definition.__doc__ or ""),
        max_attempts=options.max_attempts or get_settings().MAX_ATTEMPTS,
        deadline=None if isinstance(options.deadline, datetime) else options.deadline,
        has_unique_key=options.has_key,
        unique_scope=definition.unique_scope,
        unique_for=_word(options.unique_for),
        unique_per=None if options.unique_per is None else _word(options.unique_per),
        debounce=debounce and debounce.wait_seconds,
        throttle=throttle and throttle.rate,
        capacity=capacity and capacity.number,
        limits=[f"{each['name']}: {numbers_of(each)}" for each in declared],
        is_fair=limits is not None and limits.fair is not None,
        is_sequence=limits is not None and limits.sequence is not None,
        requires=[] if limits is None else list(limits.requires),
        sensitive=sorted(options.sensitive),
        **more,
    )


def _word(value: str | timedelta) -> str:
    return f"{value.total_seconds():g}" if isinstance(value, timedelta) else value
