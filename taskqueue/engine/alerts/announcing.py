"""Announcing raised and cleared incidents to whoever subscribes to events."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.models import AlertRule, Incident


def announce(
    connection: BaseDatabaseWrapper, rule: AlertRule, incident: Incident, what: str
) -> None:
    """Write `alert.raised` or `alert.cleared` in the caller's transaction, if anybody listens."""
