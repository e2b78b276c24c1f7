"""Classes for the project's LOGGING: add the current task to records, and write JSON.

The project has to add them to its LOGGING. See docs/logging.md.
"""

from __future__ import annotations

import json
import logging
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from taskqueue import tracing
from taskqueue.tracing.metadata import trace_id_of
from taskqueue.worker.bodies.context import Context, StepReading, _current

FIELDS = (
    "task_id", "task_name", "attempt", "queue", "worker", "workflow", "step", "trace_id",
)  # fmt: skip
# Attributes that every record has; all others were added to it.
STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
# In bytes, of one line.
LARGEST = 16 * 1024
LONGEST_FIELD, MOST_FIELDS, MOST_BITS = 1000, 50, 2048
FIRST = ("time", "level", "logger", "message")
CUT = "… [cut] …"


class ContextFilter(logging.Filter):
    """Adds to each record the task, attempt, worker, workflow and trace that it belongs to.

    Outside of a body the fields are empty, so that a format can always use them. Fields that a
    record already has are kept.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        # From now on attempts of steps read their workflow, for a filter cannot ask the database.
        StepReading.is_wanted = True

    def filter(self, record: logging.LogRecord) -> bool:
        context = _current.get()
        values = _nothing() if context is None else _fields_of(context)
        if tracing.active is not None:
            values["trace_id"] = tracing.active.trace_id()
        for name, value in values.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def _nothing() -> dict[str, Any]:
    return dict.fromkeys(FIELDS, "")


def _fields_of(context: Context) -> dict[str, Any]:
    step = context._step
    return {
        "task_id": context.task_id,
        "task_name": context._task_name,
        "attempt": context.attempt,
        "queue": context._queue_name,
        "worker": context.worker_name,
        "workflow": "" if step is None else str(step.workflow_id),
        "step": "" if step is None else step.step,
        "trace_id": trace_id_of(context.metadata),
    }


class JSONFormatter(logging.Formatter):
    """One JSON object a line, of at most 16 KiB: time, level, logger, message, fields, exception.

    Fields are those that `extra`, or `ContextFilter`, added to the record, if they are text,
    numbers or times. The arguments of the message only appear in the message.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        added = (name for name in record.__dict__ if name not in STANDARD and name not in entry)
        for name in list(added)[:MOST_FIELDS]:
            value = _plain(record.__dict__[name])
            if value not in (None, ""):
                entry[name] = value
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:
            entry["exception"] = record.exc_text
        if record.stack_info:
            entry["stack"] = self.formatStack(record.stack_info)
        return _bounded(entry)


def _time(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: Any) -> str | int | float | bool | None:
    """Return the form of a field in JSON; None for what may hold anything, as a request does."""
    match value:
        case int():  # Python refuses to write numbers of very many digits.
            bits = value.bit_length()
            return value if bits <= MOST_BITS else f"an int of {bits:,} bits"
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return value if len(value) <= LONGEST_FIELD else value[:LONGEST_FIELD] + "…"
        case UUID() | datetime() | date() | timedelta() | Decimal():
            return str(value)
    return None


def _bounded(entry: dict[str, Any]) -> str:
    """Return the line; its longest texts are cut in the middle until it is short enough."""
    line = json.dumps(entry)
    while len(line) > LARGEST:
        name = max(entry, key=lambda each: len(json.dumps(entry[each])) + len(json.dumps(each)))
        value = entry[name]
        if isinstance(value, str) and len(value) > 100:
            part = len(value) // 3
            entry[name] = value[:part] + CUT + value[-part:]
        elif name in FIRST:
            entry.popitem()
        else:
            del entry[name]
        line = json.dumps(entry)
    return line
