"""Waking workers on PostgreSQL."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch

# The server shares one lock among all sessions that notify, so notify only if a worker sleeps.
WAKE = "SELECT pg_notify('taskqueue', %s) FROM taskqueue_worker WHERE is_idle LIMIT 1"


def wake_sleeping(connection: BaseDatabaseWrapper, payload: str) -> None:
    """Wake workers at commit, if any is sleeping."""
    fetch(connection, WAKE, (payload,))
