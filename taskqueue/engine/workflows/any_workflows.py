"""Find out whether any workflow runs or stops, before the code for it is imported."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.engine.dialect import select
from taskqueue.engine.statement import Statement

# The index begins with the status, so each statement reads one entry.
ANY = Statement.of("""
    SELECT 1 FROM taskqueue_workflow WHERE status = %(status)s LIMIT 1
""")


def is_any_running(connection: BaseDatabaseWrapper) -> bool:
    """Return whether any workflow is running."""
    return bool(select(connection, ANY, status=WorkflowStatus.RUNNING.value))


def is_any_stopping(connection: BaseDatabaseWrapper) -> bool:
    """Return whether any workflow is stopping."""
    return bool(select(connection, ANY, status=WorkflowStatus.STOPPING.value))
