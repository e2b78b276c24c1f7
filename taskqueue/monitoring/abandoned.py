"""Tasks that lost workers keep from others, for their leases last on."""

from __future__ import annotations

from collections.abc import Iterator

from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.lost import all_lost_attempts
from taskqueue.monitoring.notice import ERROR, Notice


def held_by_lost(*, most: int) -> Iterator[Notice]:
    """One notice for all of them; leases that have run out are taken over without anybody."""
    connection = project_connection()
    found = all_lost_attempts(connection, limit=most)
    if not found:
        return
    now = dialect_for(connection).now(connection)
    held = [each for each in found if each.expires_at > now]
    if held:
        longest = max(held, key=lambda each: each.expires_at)
        yield Notice(
            code="lost_holds",
            level=ERROR,
            subject=str(longest.task_id),
            count=len({each.task_id for each in held}),
            is_capped=len(found) == most,
        )
