"""Reconcile uncertain results: COMMITs without a response, and claims with a lost response."""

from __future__ import annotations

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.worker.endings import unconfirmed
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.leases import Leases, PendingWrites


class Reconciliation:
    """Resolves them by what the database says once it answers again."""

    def __init__(self, pending: PendingWrites, leases: Leases) -> None:
        self._pending = pending
        self._leases = leases
        # Whether the next request compares the worker's leases with those in the database.
        self.is_needed = False

    @property
    def held(self) -> list[int] | None:
        """The leases that the worker knows; None if there is nothing to compare."""
        return list(self._leases.held) if self.is_needed else None

    def enter(self, report: Exchange, now: float) -> None:
        """Enter what a report says about uncertain attempts and claims."""
        pending = self._pending
        if report.held is not None and report.error is None:
            self.is_needed = False
        for lease_id in report.unknown_leases:
            pending.outcomes.append(Outcome(lease_id, OutcomeKind.UNSTARTED, now))
        for lease_id in report.ended:
            del pending.unsure[lease_id]
            self._leases.drop(lease_id)
        for lease_id in report.running:
            pending.outcomes.append(unconfirmed(pending.unsure.pop(lease_id)))
