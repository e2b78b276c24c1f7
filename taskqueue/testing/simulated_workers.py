"""The workers that a test simulates: their names, their registrations and their claims."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.conf import get_settings
from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.engine.connections import transaction
from taskqueue.engine.registration import Registered, register, unregister
from taskqueue.engine.rows import Claimed
from taskqueue.models import Task
from taskqueue.models.task import Route
from taskqueue.testing.choices import Choice
from taskqueue.testing.claiming import claims_of
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.state import WorkerOptions
from taskqueue.worker.supervisor import registration_of

# The worker of ordinary tasks; further ones are `testing-2`, `testing-3` …
NAME = "testing"
OPEN = (*sorted(PENDING), TaskStatus.RUNNING.value)


class Workers:
    """One worker, or as many as tasks require."""

    def __init__(self, connection: BaseDatabaseWrapper, choice: Choice) -> None:
        self._connection = connection
        self._choice = choice
        self._quotas = QueueQuotas({choice.queue_name: 1} if choice.queue_name else {})
        self._registrations = ExitStack()
        self._known: set[str] = set()

    def claim(self) -> tuple[str, Claimed] | None:
        """Claim the next task for the first worker that may take one; return both."""
        # New each time: it caches for a second which queues have tasks.
        claims = {name: claims_of(name, self._quotas, self._connection) for name in self._names()}
        with transaction(self._connection):
            left_out = self._names_left_out()
            for name, own in claims.items():
                if claimed := own.claim(self._connection, 1, left_out):
                    return name, claimed[0]
        for name, own in claims.items():
            if claimed := own.claim_limited(self._connection, 1, left_out, free=1):
                return name, claimed[0]
        return None

    def live(self) -> None:
        """Register the workers, if a task depends on which workers are alive."""
        if self._choice.workers is not None or self._apart().exists():
            for name in self._names():
                self._register(name)

    def end(self) -> None:
        """Unregister the workers."""
        self._registrations.close()

    def _apart(self) -> QuerySet[Task]:
        """Return the open tasks that only some workers may take."""
        rows = Task.objects.using(self._connection.alias)
        return rows.filter(route=Route.APART, status__in=OPEN)

    def _names(self) -> list[str]:
        """Return the chosen names, or else one name, those in tasks, and as many as tasks need."""
        if self._choice.workers is not None:
            return list(self._choice.workers)
        names = {NAME: None}
        most = 1
        for task in self._apart().only("worker_names", "pinned_to", "broadcast", "workers"):
            names |= dict.fromkeys(task.worker_names or filter(None, [task.pinned_to]))
            if task.worker_names is None and not task.broadcast:
                most = max(most, task.workers)
        return [*names, *(f"{NAME}-{place}" for place in range(2, most + 1))]

    def _names_left_out(self) -> list[str]:
        """Return the names of tasks that should not run."""
        if not self._choice.names:
            return []
        rows = Task.objects.using(self._connection.alias).filter(status__in=OPEN)
        others = rows.exclude(name__in=self._choice.names)
        return list(others.order_by().values_list("name", flat=True).distinct())

    def _register(self, name: str) -> None:
        if name in self._known:
            return
        self._known.add(name)
        described = registration_of(WorkerOptions(name=name), get_settings())
        registration = replace(described, versions={})
        answer = register(registration)
        # A row of that name that the test made itself is kept.
        if isinstance(answer, Registered):
            self._registrations.callback(
                unregister, worker_id=answer.id, incarnation=registration.incarnation
            )
