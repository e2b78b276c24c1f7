"""The subscription of an endpoint: the events that cause deliveries to it."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.models import Endpoint, Event


def checked_kinds(patterns: Iterable[str]) -> list[str]:
    return list(patterns)


def subscribe(connection: BaseDatabaseWrapper, row: Endpoint) -> None:
    """Let the feed have what an enabled endpoint wants, from the next second on."""


def unsubscribe(connection: BaseDatabaseWrapper, row: Endpoint) -> None:
    """Let the feed have nothing more for an endpoint."""


def wants(row: Endpoint, event: Event) -> bool:
    """Whether an endpoint is to be told of an event."""
    return True
