"""An event, as all interfaces show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from taskqueue.access.permissions import VIEW_EVENTS, VIEW_LEASES
from taskqueue.core.event_kinds import ALL_KINDS, EventKind
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.events.reading import FeedEvent
from taskqueue.monitoring.read_models.base import Viewer, about


@dataclass(frozen=True, kw_only=True)
class ShownEvent:
    """A change that was committed."""

    seq: int = about("Its number: without gaps, in the order in which events became visible.")
    kind: str = about("What happened.", choices=ALL_KINDS)
    at: datetime
    task: UUID | None = about("The id of the task.")
    workflow: UUID | None = about("The id of the workflow.")
    name: str = about("Of the task type, workflow, schedule or rule; of an operation its verb.")
    queue: str
    worker: str = about("Empty also where you may not see attempts.")
    attempt: int | None
    details: dict[str, Any] = about("Such as the status, the class of an error, seconds, percent.")


def shown_events(events: Sequence[FeedEvent], viewer: Viewer) -> list[ShownEvent]:
    """Return what this viewer may see of these events, whose kinds are visible to them."""
    is_whole = viewer.has_perm(VIEW_LEASES)
    shown = [ShownEvent(**vars(event)) for event in events]
    return [
        each if is_whole or not each.kind.startswith("task.") else replace(each, worker="")
        for each in shown
    ]


def visible_to(viewer: Viewer, wanted: EventFilter) -> EventFilter | None:
    """Return the filter with the kinds that this viewer may see; None if there are none."""
    nouns = {noun for noun, permission in VIEW_EVENTS.items() if viewer.has_perm(permission)}
    kinds = tuple(kind for kind in wanted.kinds if EventKind(kind).noun in nouns)
    return replace(wanted, kinds=kinds) if kinds else None


def needed_for(wanted: EventFilter) -> tuple[str, ...]:
    """Return the permissions that all of its kinds together require."""
    return tuple(sorted({VIEW_EVENTS[EventKind(kind).noun] for kind in wanted.kinds}))
