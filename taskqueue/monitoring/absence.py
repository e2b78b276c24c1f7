"""Tasks that wait for workers which are not there: no other may take them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from taskqueue.monitoring.read_models.worker import ShownWorker


class Absence:
    """Whom these workers do not include."""

    def __init__(self, workers: Iterable[ShownWorker]) -> None:
        self._takers = {worker.name: worker for worker in workers if worker.takes_tasks}

    def keeps(self, queue_name: str, names: str | None) -> bool:
        """Whether a task of the queue waits for workers with these names, and none takes it.

        `names` is JSON text; None: any worker may take it.
        """
        if names is None:
            return False
        there = [self._takers[name] for name in json.loads(names) if name in self._takers]
        return not any(worker.serves(queue_name) for worker in there)
