"""Record with a heartbeat's rule whether its calls succeed, and log each change."""

from __future__ import annotations

import logging

from taskqueue.core.log_text import one_line
from taskqueue.declarations.payload import storable
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import AlertRule
from taskqueue.models.alert import LONGEST_TEXT

logger = logging.getLogger("taskqueue.worker")


def note_failed_call(rule: AlertRule, why: str) -> None:
    """Note that a call failed. The first failure after a success is logged."""
    connection = project_connection()
    rows = AlertRule.objects.using(connection.alias).filter(id=rule.id, failing_since=None)
    now = dialect_for(connection).now(connection)
    if rows.update(failing_since=now, failure=storable(why, limit=LONGEST_TEXT)):
        logger.error("Heartbeat fails rule=%s error=%s", one_line(rule.name), one_line(why))


def note_call(rule: AlertRule) -> None:
    """Note that a call succeeded. The first success after failures is logged."""
    if rule.failing_since is None:
        return
    alias = project_connection().alias
    rows = AlertRule.objects.using(alias).filter(id=rule.id, failing_since__isnull=False)
    if rows.update(failing_since=None, failure=""):
        logger.info("Heartbeat works again rule=%s", one_line(rule.name))
