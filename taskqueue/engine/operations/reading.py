"""Reading operations."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import OperationDoesNotExist
from taskqueue.models.operation import Operation


def operations() -> QuerySet[Operation]:
    """All of them, the newest first, without the ids that were chosen one by one."""
    return Operation.objects.using(database_alias()).order_by("-id").defer("chosen")


def get_operation(operation_id: UUID | str) -> Operation:
    """One of them. Raises `OperationDoesNotExist`."""
    try:
        key = operation_id if isinstance(operation_id, UUID) else UUID(str(operation_id))
        return Operation.objects.using(database_alias()).get(id=key)
    except (ValueError, Operation.DoesNotExist):
        raise OperationDoesNotExist(f"There is no operation {operation_id}.") from None
