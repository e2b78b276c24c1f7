"""The final state of limits, as plain values, and how it is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

STOOD_STILL = "A partition stood still"
"""What a worker says that opens what nobody told of."""


class LimitedRow(NamedTuple):
    """A task that is limited."""

    task_id: str
    queue_name: str
    limits: list[dict[str, Any]]
    """As `declarations.placement` writes them, but for those of hosts and workers."""
    sequence: str = ""
    """Its name and key; empty: none."""
    tenant: str = ""
    tags: list[str] = []


class LimitChange(NamedTuple):
    """A limit was given another number by hand."""

    name: str
    number: int | None
    """Of tasks at once, or of starts in a window; None: what the code declares."""
    asked_at: float
    answered_at: float


class ServingRow(NamedTuple):
    """A worker, its slots and its tags, from its start until it ended, if it did."""

    name: str
    slots: int
    tags: list[str]
    since: float
    until: float | None


class LeftRow(NamedTuple):
    """What should not be left in the end."""

    what: str
    number: int


def read_limited() -> Iterator[LimitedRow]:
    """Read the tasks of partitions."""
    from taskqueue.models import Task

    rows = Task.objects.filter(route=2).order_by("id").values_list("id", "queue_name", "limits")
    for id, queue_name, data in rows.iterator():
        sequence = data.get("sequence")
        yield LimitedRow(
            str(id),
            queue_name,
            [each for each in data.get("limits", ()) if each["per"] == "key"],
            f"{sequence['name']} {sequence['key']}" if sequence else "",
            data.get("tenant", {}).get("key", ""),
            data.get("tags", []),
        )


def read_serving() -> Iterator[ServingRow]:
    """Read the workers."""
    from taskqueue.models import Worker

    for row in Worker.objects.order_by("id"):
        until = row.stopped_at and row.stopped_at.timestamp()
        yield ServingRow(row.name, row.concurrency, row.tags, row.started_at.timestamp(), until)


def read_left() -> Iterator[LeftRow]:
    """Read what ought to be gone once all has ended."""
    from django.db.models import Exists, OuterRef

    from taskqueue.models import Lease, LimitNote, Slot

    running = Lease.objects.filter(id=OuterRef("lease_id"), finished_at=None)
    yield LeftRow("slots of ended leases", Slot.objects.filter(~Exists(running)).count())
    yield LeftRow("notes", LimitNote.objects.count())


def await_quiet(seconds: float) -> bool:
    """Wait until no note and no slot is left; whether that came."""
    pause = threading.Event()
    for _ in range(int(seconds * 10)):
        if not any(row.number for row in read_left()):
            return True
        pause.wait(0.1)
    return False
