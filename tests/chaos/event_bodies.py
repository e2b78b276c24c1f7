"""The bodies of tasks with subscribed events, and the subscribers; `path` is the journal."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from taskqueue import GiveUp, current, task
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.events.handling import stored
from taskqueue.engine.events.subscribing import subscribe
from taskqueue.engine.making_specs import spec_of
from taskqueue.models.event import Subscriber
from tests.chaos.feed_rows import Heard
from tests.sample.worker_tasks import append

CANARY = "canary-7d41f0c2"
"""It stands in arguments, results, messages of errors and keys, and may be in no event."""
PATIENT: dict[str, Any] = {"max_crashes": 100, "crash_delay": 0}
FAR = datetime.fromisoformat("2100-01-01T00:00:00+00:00")


@task(**PATIENT)
def tell(path: str, secret: str) -> str:
    """Returns a secret, and tells of it in its log and its progress."""
    append(path, "start")
    current().log(secret)
    current().progress(50, message=secret)
    return secret


@task(**PATIENT)
def blurt(path: str, secret: str) -> None:
    """Fails for good with a secret in its message."""
    append(path, "start")
    raise GiveUp(secret)


class Gone(Exception):
    """Who enqueues goes away."""


@task(**PATIENT)
def tell_many(path: str, secret: str, count: int) -> None:
    """Enqueues many tasks in vain, and as many with an end behind their COMMIT."""
    calls = [((path, secret), {})] * count
    with suppress(Gone), transaction.atomic():
        tell.enqueue_many(calls)
        raise Gone
    with suppress(Gone), transaction.atomic():
        transaction.on_commit(_go)  # No hook after it has its turn.
        tell.enqueue_many(calls)
    append(path, "start")


def _go() -> None:
    raise Gone


@task(**PATIENT)
def hear(event: dict[str, Any]) -> int:
    """Handles an event."""
    return int(event["seq"])


def listen(*handled: str) -> Heard:
    """Subscribe for good: to everything as a stream, and as a handler to some kinds of all tasks.

    The handler is subscribed here, and not by `@on`, so that it holds before the first worker
    starts, and in no other run.
    """
    everything = EventFilter.of()
    subscribe(connection, Subscriber.STREAM, "chaos", everything)  # type: ignore[arg-type]
    subscribe(
        connection,  # type: ignore[arg-type]
        Subscriber.HANDLER,
        hear.name,
        EventFilter.of(handled, name="tests.chaos.*"),
        # Workers end handlers that no code has declared since they started.
        further={"request": stored(spec_of(hear)), "declared_at": FAR},
    )
    now = dialect_for(connection).now(connection)  # type: ignore[arg-type]
    return Heard(since=now.timestamp(), canaries=(CANARY,))
