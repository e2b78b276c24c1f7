"""Handlers of the project: definitions of which events enqueue tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.event_filters import EventFilter


@dataclass(frozen=True)
class Handler:
    """A definition, and the events for each of which a task of it is enqueued."""

    definition: BaseDefinition[Any, Any]
    wanted: EventFilter


_handlers: dict[str, list[Handler]] = {}


def declare(handler: Handler) -> None:
    """Register a handler, in addition to others of the same definition."""
    known = _handlers.setdefault(handler.definition.name, [])
    # A module that was loaded again declares its handlers again.
    known[:] = [other for other in known if other.definition is handler.definition]
    known.append(handler)


def declared() -> dict[str, list[Handler]]:
    """Return all handlers, by the names of their definitions."""
    return dict(_handlers)
