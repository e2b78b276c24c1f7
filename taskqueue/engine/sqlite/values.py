"""Times, durations and identifiers in the form in which Django stores them on SQLite.

The clock of this process is that of the database, because a process that opens an SQLite file runs
on the same host.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.retention import Retention

# Names the primary key. With old statistics, SQLite would read all tasks for each batch that a
# statement changes.
TASKS_BY_ID = "taskqueue_task INDEXED BY sqlite_autoindex_taskqueue_task_1"

# How far tests have moved the clock ahead; only `taskqueue.testing` changes it.
ahead = timedelta(0)


def clock() -> datetime:
    """Return the current time."""
    return datetime.now(UTC) + ahead


def now(connection: BaseDatabaseWrapper) -> datetime:
    return clock()


def stored(moment: datetime | None) -> str | None:
    """Return a moment as Django writes it: UTC without an offset, as text that sorts by time."""
    if moment is None:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def ago(moment: datetime, seconds: float | None) -> str | None:
    """Return the moment that many seconds before, as stored."""
    return None if seconds is None else stored(moment - timedelta(seconds=seconds))


def all_ago(moment: datetime, ages: Iterable[float | None]) -> list[str | None]:
    """Return the moments that many seconds before, each as from `ago`."""
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return [
        None
        if seconds is None
        else (naive - timedelta(seconds=seconds)).isoformat(" ", "microseconds")
        for seconds in ages
    ]


def loaded(text: str | datetime | None) -> datetime | None:
    """Return a stored moment as an aware datetime."""
    if text is None:
        return None
    moment = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def microseconds(duration: timedelta | None) -> int | None:
    """Return a duration as Django stores it."""
    return None if duration is None else duration // timedelta(microseconds=1)


def retention_of(
    retention: int | None,
    unique_until: Any,
    holds_unique_key: bool,
    unique_for: str,
    step_id: int | None,
) -> Retention:
    """Return the stored columns that decide how long a task is kept."""
    own = None if retention is None else timedelta(microseconds=retention)
    return Retention(own, loaded(unique_until), bool(holds_unique_key), unique_for, step_id)


def dashed(text: str) -> str:
    """Return a stored UUID in its usual form, in a tenth of the time that `UUID` takes."""
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def rows(columns: Iterable[Sequence[Any]]) -> str:
    """Return rows as text for `json_each`, by which SQLite takes many in one parameter."""
    return json.dumps(list(columns))
