"""Specs of enqueues, and the columns of the rows that they write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from taskqueue.declarations.limit_plan import place_from_plan
from taskqueue.declarations.options import COLUMNS as CARRIED_OPTIONS
from taskqueue.declarations.placement import Placement
from taskqueue.declarations.time_kinds import Seconds
from taskqueue.engine.payloads import KEY_COLUMNS, OWN_COLUMNS, PLACEMENT_COLUMNS
from taskqueue.models.task import Route

# The version of a spec's stored form. Raise it if the meaning of a field changes. A new field needs
# only a default: older stored specs lack it, and older versions refuse specs that have it.
VERSION = 3


@dataclass(frozen=True, kw_only=True)
class EnqueueSpec:
    """The options that all tasks of one enqueue share. Times are absolute, or in seconds from now.

    Each field that is not named in `NOT_STORED` is also a column of `Task`.
    """

    name: str
    queue_name: str
    priority: int
    options: str
    metadata: str
    max_attempts: int
    max_crashes: int
    crash_delay: timedelta
    lease_duration: timedelta | None
    ping_interval: timedelta | None
    retention: timedelta | None
    keep_last: int | None
    workers: int
    worker_names: tuple[str, ...] | None
    broadcast: bool
    run_at: datetime | None = None
    run_in: float | None = None
    deadline_at: datetime | None = None
    deadline_in: float | None = None
    expires_in: float | None = None
    unique_scope: str = ""
    unique_for: str = ""
    unique_in: float | None = None
    # The period in which the key makes one task: a word, or seconds as text; empty for none.
    unique_per: str = ""
    # How many tasks may hold the key at once, each in a place of its own; 0 for no places.
    places: int = 0
    when_full: str = ""
    # How long a debounced task waits for further calls, and the most that it waits in total.
    debounce_in: float | None = None
    debounce_most: float | None = None
    restart: str | None = None
    # Its limits as data, for enqueues without the project's code; empty for none.
    limit_plan: str = ""
    # The options that the caller named, which a holder of the key gets too; never stored.
    given: frozenset[str] = frozenset()
    # The time of the enqueue, if many share one; None for the time of its statement.
    at: datetime | None = None

    def place(self, args: str, kwargs: str) -> Placement | None:
        """Return the placement of a task with these arguments (JSON text); None without limits.

        Raises `InvalidTask` if only the project's code could tell.
        """
        if not self.limit_plan:
            return None
        return place_from_plan(
            self.limit_plan, name=self.name, queue_name=self.queue_name, stored=(args, kwargs)
        )

    def run_after_at(self, now: datetime) -> datetime:
        """Return when tasks are due that are enqueued at that moment, never before it."""
        wanted = self.run_at or now + timedelta(seconds=self.run_in or 0)
        # A time in the past means now. Otherwise the task would overtake waiting ones, and seem
        # late.
        return max(wanted, now)

    @cached_property
    def is_plain(self) -> bool:
        """Return whether any worker may run the tasks at once, without any time limit."""
        return not self.is_apart and all(getattr(self, name) is None for name in TIMED)

    @property
    def is_apart(self) -> bool:
        """Return whether several workers must run a task, or only named workers may."""
        return self.workers > 1 or self.broadcast or self.worker_names is not None

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Return its fields and its tasks' columns, except those from a clock or a payload."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return own | claim_columns(
            workers=self.workers, worker_names=self.worker_names, broadcast=self.broadcast
        )

    @cached_property
    def plain_values(self) -> tuple[Any, ...]:
        """The values of `PLAIN_PARAMETERS` that follow those of a payload."""
        return tuple(self.parameters[column] for column in PLAIN_PARAMETERS[len(OWN_COLUMNS) :])

    def columns_at(self, now: datetime) -> dict[str, Any]:
        """Return its tasks' columns at that moment, except those from a payload."""
        run_after = self.run_after_at(now)
        waits = run_after > now
        return {
            **self.parameters,
            "status": "scheduled" if waits else "ready",
            "run_after": run_after,
            "enqueued_at": now,
            "ready_at": None if waits else now,
            "deadline_at": self.deadline_at or later(now, self.deadline_in),
            "expires_at": later(now, self.expires_in),
            "unique_until": later(now, self.unique_in),
        }

    def as_json(self) -> dict[str, Any]:
        """Return its fields as plain JSON, with the version of this form."""
        values = {name: getattr(self, name) for name in STORED_FIELDS}
        for name in DURATIONS:
            values[name] = None if values[name] is None else values[name].total_seconds()
        for name in MOMENTS:
            values[name] = None if values[name] is None else values[name].isoformat()
        if self.worker_names is not None:
            values["worker_names"] = list(self.worker_names)
        return {"version": VERSION, **values}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> EnqueueSpec:
        """Return the spec that `as_json` stored, even if newer fields with defaults are missing.

        Raises ValueError for a spec of another version.
        """
        values = {**ADDED_DEFAULTS, **stored}
        version = values.pop("version", None)
        strange = values.keys() ^ STORED_FIELDS
        if version != VERSION or strange:
            raise ValueError(f"version {version}, unexpected or missing fields {sorted(strange)}")
        for name in DURATIONS:
            values[name] = None if values[name] is None else timedelta(seconds=values[name])
        for name in MOMENTS:
            values[name] = None if values[name] is None else datetime.fromisoformat(values[name])
        if values["worker_names"] is not None:
            values["worker_names"] = tuple(values["worker_names"])
        return cls(**values)


DURATIONS = tuple(option.name for option in CARRIED_OPTIONS if isinstance(option.kind, Seconds))
# A task is plain if none of these fields is set.
TIMED = (
    "ping_interval", "keep_last", "at", "run_at", "run_in", "deadline_at", "deadline_in",
    "expires_in",
)  # fmt: skip
MOMENTS = ("run_at", "deadline_at", "at")

# The fields of a spec that hold the value of an option.
OPTION_COLUMNS = tuple(option.name for option in CARRIED_OPTIONS)
# The fields of a spec that are not columns, though columns may be computed from them.
NOT_STORED = frozenset(
    {
        "run_at", "run_in", "deadline_in", "expires_in", "unique_in", "restart", "at",
        "unique_per", "places", "when_full", "debounce_in", "debounce_most", "limit_plan", "given",
    }
)  # fmt: skip
# The fields of the form that is stored for later enqueues.
STORED_FIELDS = frozenset(field.name for field in fields(EnqueueSpec)) - {"given"}
ADDED_DEFAULTS = {
    field.name: field.default
    for field in fields(EnqueueSpec)
    if field.name in STORED_FIELDS and field.default is not MISSING
}
LIMIT_COLUMNS = ("deadline_at", "expires_at", "ping_interval", "keep_last")
CLAIM_COLUMNS = ("route", "workers", "worker_names", "pinned_to", "broadcast", "open_slots")
# The columns of a new plain task, except those from a clock.
PLAIN_PARAMETERS = OWN_COLUMNS + tuple(
    field.name
    for field in fields(EnqueueSpec)
    if field.name not in {*NOT_STORED, *LIMIT_COLUMNS, *KEY_COLUMNS, *CLAIM_COLUMNS}
)
# The columns of a new plain task; others have defaults in the database.
PLAIN_COLUMNS = (*PLAIN_PARAMETERS, "status", "run_after", "enqueued_at", "ready_at")
# The columns of any new task.
COLUMNS = (*PLAIN_COLUMNS, *LIMIT_COLUMNS, *KEY_COLUMNS, *CLAIM_COLUMNS, *PLACEMENT_COLUMNS)


def claim_columns(
    *, workers: int, worker_names: Sequence[str] | None, broadcast: bool
) -> dict[str, Any]:
    """Return the columns that say which workers may run a task.

    A broadcast has no workers yet: they are chosen when a worker first sees it ready.
    """
    names = worker_names
    wanted = 0 if broadcast else workers
    is_apart = broadcast or workers > 1 or names is not None
    return {
        "route": Route.APART.value if is_apart else Route.ORDINARY.value,
        "workers": wanted,
        "worker_names": None if names is None else json.dumps(list(names)),
        "pinned_to": names[0] if names is not None and len(names) == 1 else "",
        "broadcast": broadcast,
        "open_slots": wanted,
    }


def later(now: datetime, seconds: float | None) -> datetime | None:
    """Return the moment that many seconds later; None for None."""
    return None if seconds is None else now + timedelta(seconds=seconds)
