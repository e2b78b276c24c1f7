"""Why a task has its status: `why(task)`."""

from __future__ import annotations

from taskqueue.core.states import FINISHED, PENDING
from taskqueue.models import Task
from taskqueue.monitoring.why.codes import Reason
from taskqueue.monitoring.why.pending import why_pending
from taskqueue.monitoring.why.running import why_finished, why_running
from taskqueue.monitoring.why.surroundings import Surroundings

__all__ = ["Reason", "why"]


def why(task: Task) -> list[Reason]:
    """Return what keeps the task from running, who holds it, or how it ended: at least one reason.

    It makes a few queries by indexes; the task's row is taken as given.
    """
    around = Surroundings(task)
    if task.status in PENDING:
        return why_pending(around)
    return list(why_finished(around)) if task.status in FINISHED else why_running(around)
