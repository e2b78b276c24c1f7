"""The tasks that send webhooks, and tell an owner that an endpoint is disabled.

Every worker declares them, so what few of their bodies need is imported by these.
"""

from __future__ import annotations

from uuid import UUID

from taskqueue.declarations.context import AttemptContext
from taskqueue.declarations.own_tasks import DELIVER, TELL
from taskqueue.definitions import task
from taskqueue.engine.connections import project_connection
from taskqueue.models import Endpoint


@task(takes_context=True, **DELIVER)
def deliver(context: AttemptContext, endpoint: int, delivery: str) -> str:
    """Send a delivery to its endpoint; the response decides whether and when it is sent again."""
    from taskqueue.webhooks.delivering import send_delivery

    return send_delivery(endpoint, delivery, UUID(context.task_id))


@task(**TELL)
def tell_owner(endpoint: int) -> None:
    """Mail the creator of a disabled endpoint, or the admins if the creator has no address."""
    from taskqueue.webhooks.telling import tell

    found = Endpoint.objects.using(project_connection().alias).filter(id=endpoint).first()
    if found is not None and not found.is_enabled:
        tell(found)
