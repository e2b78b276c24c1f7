"""Ending tasks whose deadline passed before they ran, or that expired."""

from __future__ import annotations

from taskqueue.engine.ends import NEXT_END, end_overdue
from taskqueue.engine.failures import log_failed_tasks
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.tally import Tally
from taskqueue.worker.duties.duty import Turn

BATCH = 500


class EndOverdue:
    """Ends what nobody runs."""

    def __init__(self, policy: EndPolicy, tally: Tally) -> None:
        self._policy = policy
        self._tally = tally

    def step(self, turn: Turn) -> float | None:
        if turn.forecast.is_over(NEXT_END):
            ended = end_overdue(
                turn.connection, limit=BATCH, policy=self._policy, tally=self._tally
            )
            log_failed_tasks(
                turn.connection, [task.task_id for task in ended if task.status == "failed"]
            )
            turn.has_changed = turn.has_changed or bool(ended)
        return turn.wait_for(turn.forecast.until(NEXT_END))
