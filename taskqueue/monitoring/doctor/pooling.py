"""Whether a session is the connection's own: behind a pooler by the transaction nothing listens."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.notify import Listener
from taskqueue.monitoring.doctor.finding import INFO, OK, Finding

CHECK = "pooling"
SILENCE = 5.0


def look_at_pooling(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """As a worker finds it out: by a notification to itself, on a connection as workers open it."""
    own = open_worker_connection(silence=SILENCE)
    try:
        is_proven = Listener(own, lambda payload: None).start()
    finally:
        own.close()
    if is_proven:
        yield Finding(
            check=CHECK, severity=OK, seen="A session is its connection's own: workers listen."
        )
    else:
        yield Finding(
            check=CHECK,
            severity=INFO,
            seen="LISTEN is not proven: a pooler hands out sessions by the transaction. A worker "
            "that connects like this polls every second, and prepares no statements.",
            remedy="Let workers connect directly, or by a pooler in session mode; web processes "
            "may stay as they are.",
        )
