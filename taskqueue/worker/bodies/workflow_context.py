"""The workflow of a running body: its name and ids, its context, and the body's updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from taskqueue.declarations.payload import dumps
from taskqueue.declarations.workflows.context import merged
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import InvalidWorkflow
from taskqueue.models import Task


class _Read(NamedTuple):
    id: UUID
    name: str
    step: str
    place: int
    values: dict[str, Any]
    schedule: str
    nominal_at: datetime | None
    is_shared: bool


class WorkflowContext(Mapping[str, Any]):
    """The workflow of a running body. As a mapping, its values.

    It is read once, when the body first asks; for an `async def` body, before it begins. Updates,
    also the body's own, become visible to later attempts only.
    """

    def __init__(self, task_id: str) -> None:
        self._task_id = task_id
        self._updates: dict[str, Any] = {}

    @property
    def id(self) -> UUID:
        """The id of the workflow."""
        return self._read.id

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return self._read.name

    @property
    def step(self) -> str:
        """The name of the step for which the body runs."""
        return self._read.step

    @property
    def place(self) -> int:
        """The position of the call in its step, from 0."""
        return self._read.place

    @property
    def schedule(self) -> str:
        """The name of the schedule that enqueued the workflow; empty if there is none."""
        return self._read.schedule

    @property
    def nominal_at(self) -> datetime | None:
        """The nominal time of the schedule for which the workflow runs, in UTC."""
        return self._read.nominal_at

    def __getitem__(self, key: str) -> Any:
        return self._read.values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read.values)

    def __len__(self) -> int:
        return len(self._read.values)

    def update(self, **values: Any) -> None:
        """Set values of the workflow's context; they are stored if this attempt succeeds.

        Updates are merged by key, in the order in which tasks end. Raises `InvalidWorkflow` for
        values that cannot be stored or exceed the context's maximum size, and in a task of several
        workers, because it does not end with each attempt.
        """
        if self._read.is_shared:
            raise InvalidWorkflow(
                f"Several workers run step {self.step!r}. Let the step after it, which is given "
                "the list of their results, change the context."
            )
        self._updates = merged(self._updates, [values])

    def read(self) -> None:
        """Read it now, because the body of an `async def` cannot query the database."""
        self._read  # noqa: B018  (read once, and kept)

    @property
    def updates(self) -> str | None:
        """Return the values that the body has set, as JSON text; None if it has set none."""
        return dumps(self._updates) if self._updates else None

    @cached_property
    def _read(self) -> _Read:
        tasks = Task.objects.using(database_alias()).filter(id=self._task_id)
        found = tasks.values_list(
            "step__workflow_id", "step__workflow__name", "step__name", "place",
            "step__workflow__context", "step__workflow__schedule__name",
            "step__workflow__nominal_at", "workers", "broadcast",
        )  # fmt: skip
        id, name, step, place, values, schedule, nominal_at, workers, broadcast = found.get()
        return _Read(
            id=id, name=name, step=step, place=place or 0, values=values, schedule=schedule or "",
            nominal_at=nominal_at, is_shared=workers > 1 or broadcast,
        )  # fmt: skip
