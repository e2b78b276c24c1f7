"""Bugs in leases: pings, takeover, and the bodies that run under them."""

from __future__ import annotations

import time
from typing import Any

from tests.chaos.bugs.planting import Planting

ENGINE = "taskqueue.engine"


def takeover_without_expiry(planting: Planting) -> None:
    """Leases are taken over though they have not run out."""
    from taskqueue.engine import takeover

    now = {"postgresql": "clock_timestamp()", "sqlite": "%(now)s"}[planting.vendor]
    planting.rewrite(f"{ENGINE}.takeover:EXPIRED_LEASES", f"expires_at < {now}", "true")

    def step(self: Any, connection: Any, now: float) -> Any:
        duty = self._take_over
        takeover.take_over(connection, policy=duty._policy, grace=duty._grace, tally=duty._tally)
        return before(self, connection, now)

    before = planting.replace("taskqueue.worker.duties:Duties.step", step)


def takeover_without_lock(planting: Planting) -> None:
    """What was found expired is taken over a while later, without another look."""
    from taskqueue.core.outcomes import Outcome, OutcomeKind
    from taskqueue.engine.connections import transaction
    from taskqueue.engine.dialect import dialect_for
    from taskqueue.engine.takeover import EXPIRED, LOST, expired_leases

    # The guardian and the next claim would hide it: what nobody renews has no body for long.
    children_outlive_leases(planting)

    def take_over(
        connection: Any, *, policy: Any, grace: Any, tally: Any, suspects: Any = None
    ) -> Any:
        with transaction(connection):
            expired = expired_leases(connection, grace=grace)
        if not expired:
            return {}
        time.sleep(2.0)
        outcomes = [
            Outcome(lease_id, OutcomeKind.LOST, 0.0, error_class=LOST, error_message=EXPIRED)
            for lease_id in expired
        ]
        with transaction(connection):
            return dialect_for(connection).record_endings(connection, outcomes, policy)

    planting.replace(f"{ENGINE}.takeover:take_over", take_over)


def takeover_never(planting: Planting) -> None:
    """Nobody takes over what ran out."""
    planting.replace(f"{ENGINE}.takeover:take_over", lambda *arguments, **named: {})


def no_pings_while_bodies_run(planting: Planting) -> None:
    """A lease is not renewed while its body runs, which goes on nevertheless."""

    def step(self: Any, began: float, held: Any) -> None:
        before(self, began, [job for job in held if job.started_at is None])

    # A second guard would end what nobody renews.
    children_outlive_leases(planting)
    before = planting.replace("taskqueue.worker.heartbeat:Heartbeat.step", step)


def pings_without_fence(planting: Planting) -> None:
    """A ping renews a lease that has ended."""
    name = f"{ENGINE}.{planting.vendor}.duties:RENEW"
    if planting.vendor == "postgresql":
        planting.rewrite(name, " AND finished_at IS NULL", "")
    else:
        planting.rewrite(name, " AND taskqueue_lease.status = 'running'", "")


def children_outlive_leases(planting: Planting) -> None:
    """A body goes on when nobody could renew its lease."""
    for module in ("heartbeat", "jobs"):
        planting.replace(f"taskqueue.worker.{module}:FENCE", 100)


def stops_not_enforced(planting: Planting) -> None:
    """A body that does not listen is let go on."""
    planting.replace("taskqueue.worker.stopping:Stopper.enforce", lambda self, now: None)
