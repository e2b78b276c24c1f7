"""Collected events, and the batches that were made of them, as plain values."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

DIGEST = "tests.chaos.batch_bodies.digest"


class EventRow(NamedTuple):
    """What a client knows of an event; `state` is as in `Enqueue`."""

    number: int
    group: str
    state: str


class BatchRow(NamedTuple):
    """A task that was made of events: the number and the group of each."""

    task_id: str
    events: list[tuple[int, str]]


class EventLog:
    """A file to which those who collect append, before and after each transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, state: str, events: Iterable[Mapping[str, Any]]) -> None:
        """Write what is known of these events now."""
        lines = [json.dumps([each["number"], each["group"], state]) + "\n" for each in events]
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, "".join(lines).encode())
        finally:
            os.close(descriptor)


def read_events(path: Path) -> Iterator[EventRow]:
    """Read what was last known of each event."""
    from tests.chaos.clients import whole_lines

    known = {row[0]: EventRow(*row) for row in map(json.loads, whole_lines(path))}
    return iter(known.values())


def read_batches() -> Iterator[BatchRow]:
    """Read the batches by the arguments of their tasks."""
    from taskqueue.models import Task

    for id, args in Task.objects.filter(name=DIGEST).order_by("id").values_list("id", "args"):
        yield BatchRow(str(id), [(event["number"], event["group"]) for event in args[0]])


def read_collected() -> Iterator[int]:
    """Read the events that wait for their batch."""
    from taskqueue.models import Collected

    rows = Collected.objects.filter(name=DIGEST).order_by("id").values_list("event", flat=True)
    return (int(json.loads(event)["number"]) for event in rows)
