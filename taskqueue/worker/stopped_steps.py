"""Cancel claimed tasks of workflows that are being stopped, so that none of them starts."""

from __future__ import annotations

import logging
import time

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.snapshots import STEP
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.tally import Tally
from taskqueue.engine.workflows.any_workflows import is_any_stopping
from taskqueue.worker.exchange import Exchange

logger = logging.getLogger("taskqueue.worker")

# Seconds between two looks whether any workflow is being stopped, while none is: so long after a
# cancel tasks of it may start. Where one is, each claim looks.
LOOK_INTERVAL = 0.1
IN_OPTIONS = f'"{STEP}"'


class StoppedSteps:
    """Looks after the tasks of steps that were claimed; all others cost it nothing."""

    def __init__(self, policy: EndPolicy, tally: Tally) -> None:
        self._policy, self._tally = policy, tally
        self._look_at = 0.0

    def cancel(self, connection: BaseDatabaseWrapper, exchange: Exchange) -> bool:
        """Cancel what an exchange has claimed and must not start; whether there was any.

        It also takes a turn of the stop itself, unless others do: claims do not stay ahead of it.
        Where that fails, the tasks start, and are asked to stop.
        """
        claimed = [row for row in exchange.claimed if row.options and IN_OPTIONS in row.options]
        exchange.has_steps = bool(claimed)
        if not claimed or time.monotonic() < self._look_at:
            return False
        try:
            if not is_any_stopping(connection):
                self._look_at = time.monotonic() + LOOK_INTERVAL
                return False
            # Only here, see `late_imports`.
            from taskqueue.engine.workflows.rounds import advance
            from taskqueue.engine.workflows.unstarted import cancel_unstarted

            ended = cancel_unstarted(connection, claimed, policy=self._policy, tally=self._tally)
            gone = ended.lease_ids
            exchange.claimed = [row for row in exchange.claimed if row.lease_id not in gone]
            if gone:
                advance(connection, ended.workflow_ids)
        except Exception:
            if not connection.is_usable():
                raise
            logger.exception("Claimed tasks of workflows that stop not cancelled")
            return False
        return bool(gone)
