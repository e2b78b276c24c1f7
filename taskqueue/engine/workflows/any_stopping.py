"""Whether any workflow is being stopped: what a worker asks before it loads what stops one."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import select
from taskqueue.engine.statement import Statement

# The index begins with the status: one entry is read.
ANY_STOPPING = Statement.of("""
    SELECT 1 FROM taskqueue_workflow WHERE status = 'stopping' LIMIT 1
""")


def is_any_stopping(connection: BaseDatabaseWrapper) -> bool:
    """Return whether any workflow is being stopped."""
    return bool(select(connection, ANY_STOPPING))
