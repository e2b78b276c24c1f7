"""Events: handlers, and reading the feed.

An event is written only where somebody has subscribed to its kind: a handler, a webhook, an alert
rule, or somebody who reads. See docs/events.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.declarations.handlers import Handler, declare
from taskqueue.definitions import Definition, define
from taskqueue.exceptions import ArgumentsDoNotBind, EventsGone, InvalidSubscription

__all__ = ["EventFilter", "EventsGone", "InvalidSubscription", "on"]

Patterns = str | Iterable[str]


def on(
    *kinds: str,
    name: Patterns = (),
    queue: Patterns = (),
    task: UUID | str | None = None,
    workflow: UUID | str | None = None,
) -> Callable[[Any], Definition[Any, Any]]:
    """Enqueue a task of the decorated function for each event that fits.

    Above `@task(...)` its tasks have those options. `kinds` may be patterns such as `task.*`, as
    may `name` and `queue`; what is left out lets all events pass. The body gets the event as a
    dict. Events of handlers' own tasks cause none. Raises `InvalidSubscription`.
    """
    wanted = EventFilter.of(kinds, name=name, queue=queue, task=task, workflow=workflow)

    def decorate(body: Any) -> Definition[Any, Any]:
        definition: Definition[Any, Any] = (
            body if isinstance(body, Definition) else define(body, {})
        )
        _check(definition)
        declare(Handler(definition, wanted))
        return definition

    return decorate


def _check(definition: Definition[Any, Any]) -> None:
    options = definition.options
    if options.has_key or options.batch is not None:
        raise InvalidSubscription(
            f"{definition.name} handles events: it can have no unique_key, debounce, throttle, "
            "capacity or batch, or events would be lost."
        )
    try:
        definition.signature.check(definition.name, [{}], {})
    except ArgumentsDoNotBind:
        parameters = inspect.signature(definition.body)
        raise InvalidSubscription(
            f"{definition.name} handles events: it must take one argument, the event, "
            f"not {parameters}."
        ) from None
