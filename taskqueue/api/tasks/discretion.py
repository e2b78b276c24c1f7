"""What a reason tells to whom: that there is one, to all who see the task; of whom, to fewer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES, VIEW_QUEUES, VIEW_WORKERS
from taskqueue.api.access import has_all
from taskqueue.monitoring.why import Reason, codes


class Veil(NamedTuple):
    """What is told of a reason without certain permissions."""

    needs: tuple[str, ...]
    """All of them are needed to be told everything."""
    message: str = ""
    """In place of the whole sentence; empty: what remains has a sentence of its own."""
    is_kept: frozenset[str] = frozenset()
    """What of it is the task's own."""


MOMENT, SUBJECT = frozenset({"moment"}), frozenset({"subject"})
VEILS = {
    codes.RETRY_DUE: Veil((VIEW_LEASES,), is_kept=MOMENT),
    codes.QUEUE_PAUSED: Veil((VIEW_QUEUES,), is_kept=SUBJECT),
    codes.WORKERS_ABSENT: Veil((VIEW_WORKERS,), "It waits for certain workers that do not live."),
    codes.WORKER_TROUBLE: Veil((VIEW_WORKERS,), "A worker of its queue cannot work."),
    codes.SLOTS_BUSY: Veil(
        (VIEW_WORKERS,), "All slots of the workers of its queue are busy.", SUBJECT
    ),
    codes.TOO_FEW_WORKERS: Veil(
        (VIEW_WORKERS,), "It waits for more workers of its queue than live.", SUBJECT
    ),
    codes.WORKER_WAITS: Veil((VIEW_LEASES,), "A worker that has tried it lets others go first."),
    codes.RUNNING: Veil((VIEW_LEASES,), "A worker runs it."),
    codes.CLAIMED: Veil((VIEW_LEASES,), "A worker has claimed it."),
    codes.LEASE_OVER: Veil((VIEW_LEASES,), "The lease of its worker has run out."),
    codes.WORKER_LOST: Veil((VIEW_LEASES, VIEW_WORKERS), "Its worker gives no sign of life."),
    codes.STOP_REQUESTED: Veil((VIEW_LEASES,), "It was asked to stop."),
    codes.WEDGED: Veil((VIEW_LEASES,), "It has been silent for far longer than its like."),
    # Who it was, an attempt or the audit tells.
    codes.CANCELLED: Veil((VIEW_LEASES, VIEW_AUDITS), is_kept=MOMENT),
}
"""By code; what is not here is the task's own."""


def told(reason: Reason, user: Any) -> dict[str, Any]:
    """The reason as this user may know it."""
    veil = VEILS.get(reason.code)
    if veil is None or has_all(user, veil.needs):
        return reason.as_dict()
    bare = replace(
        reason,
        subject=reason.subject if "subject" in veil.is_kept else "",
        moment=reason.moment if "moment" in veil.is_kept else None,
        details={},
    )
    if not veil.message:
        return bare.as_dict()
    return {
        "code": bare.code, "message": veil.message, "subject": bare.subject,
        "moment": bare.moment, "details": {},
    }  # fmt: skip
