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

# Seconds between two checks for stopping workflows while there are none: for this long after a
# cancel its tasks may start. While there are some, each claim checks.
LOOK_INTERVAL = 0.1
IN_OPTIONS = f'"{STEP}"'


class StoppedSteps:
    """Handles claimed tasks of steps; other tasks cost nothing."""

    def __init__(self, policy: EndPolicy, tally: Tally) -> None:
        self._policy, self._tally = policy, tally
        self._look_at = 0.0

    def cancel(self, connection: BaseDatabaseWrapper, exchange: Exchange) -> bool:
        """Cancel tasks that an exchange has claimed and must not start.

        Return whether there were any. It also takes a turn of the stop itself, unless others do, so
        that claims do not stay ahead of it. If this fails, the tasks start, and are asked to stop.
        """
        claimed = [row for row in exchange.claimed if row.options and IN_OPTIONS in row.options]
        exchange.has_steps = bool(claimed)
        if not claimed or time.monotonic() < self._look_at:
            return False
        try:
            if not is_any_stopping(connection):
                self._look_at = time.monotonic() + LOOK_INTERVAL
                return False
            # Imported here, see `late_imports`.
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
