"""Subscribe permanently to all events of tasks, without an effect; or remove all subscriptions."""

from __future__ import annotations

import sys

import django

django.setup()

from django.db import connection  # noqa: E402

from taskqueue.declarations.event_filters import EventFilter  # noqa: E402
from taskqueue.engine.events.subscribing import subscribe, unsubscribe  # noqa: E402
from taskqueue.models.event import Subscriber  # noqa: E402

SUBJECT = "benchmark"

if __name__ == "__main__":
    if sys.argv[1] == "everybody":
        subscribe(connection, Subscriber.STREAM, SUBJECT, EventFilter.of("task.*"))
    else:
        unsubscribe(connection, Subscriber.STREAM, SUBJECT)
