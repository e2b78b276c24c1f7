"""Which tasks a bulk verb is about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, OuterRef, Q, QuerySet

from taskqueue.engine.control.locking import TaskId, id_of
from taskqueue.exceptions import TaskDoesNotExist
from taskqueue.models import Lease, Task
from taskqueue.payload import storable
from taskqueue.states import TaskStatus


def is_storable(text: object) -> bool:
    """Whether a database can hold the text; what it cannot hold, it cannot be asked for."""
    return isinstance(text, str) and storable(text, limit=len(text)) == text


def _ids(given: Collection[TaskId]) -> tuple[UUID, ...]:
    try:
        return tuple(map(id_of, given))
    except TaskDoesNotExist as error:
        raise ValueError(f"ids holds what is none: {error}") from None


@dataclass(frozen=True, kw_only=True)
class TaskFilter:
    """Those tasks that fit all that is given. Raises ValueError if nothing is given.

    An empty collection is a choice too: nothing fits it.
    """

    ids: Collection[TaskId] | None = None
    """Ids, or handles; kept as ids."""
    statuses: Collection[str] | None = None
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
        if self.ids is not None:
            object.__setattr__(self, "ids", _ids(self.ids))
        known = [status.value for status in TaskStatus]
        for status in self.statuses or ():
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
            self.ids is not None
            or self.statuses is not None
            or self.name
            or self.queue_name
            or self.worker
            or self.error_class
            or self.enqueued_after
            or self.enqueued_before
        )

    @property
    def _texts(self) -> tuple[str, ...]:
        return (self.name, self.queue_name, self.worker, self.error_class)

    def tasks(self, connection: BaseDatabaseWrapper) -> QuerySet[Task]:
        """The rows."""
        tasks = Task.objects.using(connection.alias)
        if not all(is_storable(text) for text in self._texts if text):
            return tasks.none()
        if self.ids is not None:
            tasks = tasks.filter(id__in=list(self.ids))
        if self.statuses is not None:
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
