"""The body of a webhook message: it is small; the receiver fetches further details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from taskqueue.models import Event

# The details of an event that a message contains, in addition to the event's columns.
SHOWN_DETAILS = ("status", "alert", "kind", "subject", "value", "count")


@dataclass(frozen=True, kw_only=True)
class Message:
    """The body of a webhook in its stored form."""

    kind: str
    # The time of the event, in ISO 8601.
    timestamp: str
    data: Mapping[str, Any]
    # The number of the event; None if it is not in the feed.
    seq: int | None = None

    @property
    def payload(self) -> dict[str, Any]:
        """Return the JSON for the row."""
        return {"type": self.kind, "timestamp": self.timestamp, "data": dict(self.data)}


def message_of(event: Event) -> Message:
    """Return the message about a numbered event."""
    subject = event.task_id or event.workflow_id
    data = {
        "id": None if subject is None else str(subject),
        "name": event.name,
        "queue": event.queue_name,
        "worker": event.worker,
        "attempt": event.attempt,
        "seq": event.seq,
        **{name: event.details[name] for name in SHOWN_DETAILS if name in event.details},
    }
    return Message(
        kind=event.kind,
        timestamp=moment_text(event.at),
        data={name: value for name, value in data.items() if value not in (None, "")},
        seq=event.seq,
    )


def moment_text(moment: datetime) -> str:
    """Return a moment in ISO 8601, in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
