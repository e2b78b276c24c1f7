"""Events: handlers, and reading the feed.

An event is written only if there is a subscription to its kind, by a handler, a webhook, an alert
rule or a reader. See docs/events.md.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.declarations.handlers import Handler, declare
from taskqueue.definitions import Definition, define
from taskqueue.exceptions import ArgumentsDoNotBind, EventsGone, InvalidSubscription, TooManyReaders

if TYPE_CHECKING:
    from taskqueue.engine.events.reading import FeedEvent

__all__ = [
    "EventsGone", "InvalidSubscription", "TooManyReaders", "asince", "last", "on", "since",
    "stream",
]  # fmt: skip

Patterns = str | Iterable[str]


def on(
    *kinds: str,
    name: Patterns = (),
    queue: Patterns = (),
    task: UUID | str | None = None,
    workflow: UUID | str | None = None,
) -> Callable[[Any], Definition[Any, Any]]:
    """Enqueue a task of the decorated function for each matching event.

    Put it above `@task(...)` to set options of these tasks. `kinds`, `name` and `queue` may be
    patterns such as `task.*`; a filter that is left out matches all events. The body receives the
    event as a dict. Events of handlers' own tasks are left out. Raises `InvalidSubscription`.
    """
    if any(callable(kind) for kind in kinds):
        raise InvalidSubscription(
            "@on takes the kinds of events: write @on('task.failed'), or @on() for all of them."
        )
    wanted = EventFilter.of(kinds, name=name, queue=queue, task=task, workflow=workflow)

    def decorate(body: Any) -> Definition[Any, Any]:
        definition: Definition[Any, Any] = (
            body if isinstance(body, Definition) else define(body, {})
        )
        _check(definition)
        declare(Handler(definition, wanted))
        return definition

    return decorate


def last() -> int:
    """Return the number of the last event; 0 before the first."""
    from taskqueue.engine.connections import project_connection
    from taskqueue.engine.events.subscribing import last_seq

    return last_seq(project_connection())


def since(
    seq: int,
    *kinds: str,
    name: Patterns = (),
    queue: Patterns = (),
    task: UUID | str | None = None,
    workflow: UUID | str | None = None,
    limit: int = 1000,
) -> list[FeedEvent]:
    """Return the first matching events after a number.

    Reading subscribes: matching events are written from now on, as long as the same filter is read
    again within half a minute. Raises `EventsGone`, which names the oldest event, if unread events
    were deleted or the number is ahead of the feed; `InvalidSubscription`; and `TooManyReaders`.
    """
    from taskqueue.engine.connections import project_connection
    from taskqueue.engine.events.reading import LARGEST_SEQ, MOST, read
    from taskqueue.engine.events.subscribing import keep_reading

    wanted = EventFilter.of(kinds, name=name, queue=queue, task=task, workflow=workflow)
    _check_number("seq", seq, least=0, most=LARGEST_SEQ)
    _check_number("limit", limit, least=1, most=MOST)
    connection = project_connection()
    keep_reading(connection, wanted)
    return read(connection, wanted, after=seq, limit=limit).events


async def asince(seq: int, *kinds: str, **conditions: Any) -> list[FeedEvent]:
    """Async version of `since`."""
    return await sync_to_async(since, thread_sensitive=True)(seq, *kinds, **conditions)


async def stream(
    *kinds: str,
    name: Patterns = (),
    queue: Patterns = (),
    task: UUID | str | None = None,
    workflow: UUID | str | None = None,
    after: int | None = None,
) -> AsyncIterator[FeedEvent]:
    """Yield matching events as they come: those after the number `after`, or from now on.

    Raises `EventsGone`, `InvalidSubscription` and `TooManyReaders`, as `since` does.
    """
    from taskqueue.engine.events.following import follow
    from taskqueue.engine.events.reading import LARGEST_SEQ

    wanted = EventFilter.of(kinds, name=name, queue=queue, task=task, workflow=workflow)
    if after is not None:
        _check_number("after", after, least=0, most=LARGEST_SEQ)
    async for page in follow(wanted, after=after):
        for event in page.events:
            yield event


def _check_number(name: str, value: object, *, least: int, most: int) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:  # type: ignore[operator]
        raise InvalidSubscription(
            f"{name} must be a whole number from {least} to {most:,}, not {value!r}."
        )


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
