"""Waking workers on PostgreSQL."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch

# The server shares a lock among all that notify at commit: only where a worker sleeps.
WAKE = "SELECT pg_notify('taskqueue', %s) FROM taskqueue_worker WHERE is_idle LIMIT 1"


def wake_sleeping(connection: BaseDatabaseWrapper, payload: str) -> None:
    """Wake workers at commit, where any sleeps."""
    fetch(connection, WAKE, (payload,))
