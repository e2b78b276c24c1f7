"""Which tasks a bulk verb is about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, OuterRef, Q, QuerySet

from taskqueue.models import Lease, Task
from taskqueue.states import TaskStatus


@dataclass(frozen=True, kw_only=True)
class TaskFilter:
    """Those tasks that fit all that is given. Raises ValueError if nothing is given."""

    ids: Collection[UUID] = ()
    statuses: Collection[str] = ()
    name: str = ""
    queue_name: str = ""
    worker: str = ""
    """A worker that holds the task, or has held it."""
    error_class: str = ""
    """The path of the class that the task ended with, or the class's name alone."""
    enqueued_after: datetime | None = None
    enqueued_before: datetime | None = None
    everything: bool = False
    """Says that no choice is meant."""

    def __post_init__(self) -> None:
        for name in ("ids", "statuses"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} holds several, such as [{getattr(self, name)!r}].")
        known = [status.value for status in TaskStatus]
        for status in self.statuses:
            if status not in known:
                near = get_close_matches(status, known, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Choose from {known}."
                raise ValueError(f"There is no status {status!r}. {hint}")
        for moment in (self.enqueued_after, self.enqueued_before):
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"enqueued_after and enqueued_before are aware, not {moment!r}.")
        if self.everything == self._is_choice:
            raise ValueError("Choose tasks by some property, or say everything=True.")

    @property
    def _is_choice(self) -> bool:
        return bool(
            self.ids
            or self.statuses
            or self.name
            or self.queue_name
            or self.worker
            or self.error_class
            or self.enqueued_after
            or self.enqueued_before
        )

    def tasks(self, connection: BaseDatabaseWrapper) -> QuerySet[Task]:
        """The rows."""
        tasks = Task.objects.using(connection.alias)
        if self.ids:
            tasks = tasks.filter(id__in=list(self.ids))
        if self.statuses:
            tasks = tasks.filter(status__in=list(self.statuses))
        if self.name:
            tasks = tasks.filter(name=self.name)
        if self.queue_name:
            tasks = tasks.filter(queue_name=self.queue_name)
        if self.worker:
            held = Lease.objects.using(connection.alias).filter(
                task_id=OuterRef("id"), worker_id=self.worker
            )
            tasks = tasks.filter(Exists(held))
        if self.error_class:
            named = Q(error_class__endswith=f".{self.error_class}")
            tasks = tasks.filter(Q(error_class=self.error_class) | named)
        if self.enqueued_after:
            tasks = tasks.filter(enqueued_at__gt=self.enqueued_after)
        if self.enqueued_before:
            tasks = tasks.filter(enqueued_at__lt=self.enqueued_before)
        return tasks
