"""Times, durations and identifiers as Django stores them on SQLite.

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

# Of the primary key. Statistics from when there were few tasks would have SQLite read all of them
# for each batch that a statement changes.
TASKS_BY_ID = "taskqueue_task INDEXED BY sqlite_autoindex_taskqueue_task_1"

# The time that tests have travelled ahead; only `taskqueue.testing` changes it.
ahead = timedelta(0)


def clock() -> datetime:
    """The moment."""
    return datetime.now(UTC) + ahead


def now(connection: BaseDatabaseWrapper) -> datetime:
    return clock()


def stored(moment: datetime | None) -> str | None:
    """A moment as Django writes it: UTC without an offset; text that sorts by time."""
    if moment is None:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def ago(moment: datetime, seconds: float | None) -> str | None:
    """That many seconds before the moment, as stored."""
    return None if seconds is None else stored(moment - timedelta(seconds=seconds))


def all_ago(moment: datetime, ages: Iterable[float | None]) -> list[str | None]:
    """So many seconds before the moment, each as `ago` gives it."""
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return [
        None
        if seconds is None
        else (naive - timedelta(seconds=seconds)).isoformat(" ", "microseconds")
        for seconds in ages
    ]


def loaded(text: str | datetime | None) -> datetime | None:
    """A stored moment, aware again."""
    if text is None:
        return None
    moment = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def microseconds(duration: timedelta | None) -> int | None:
    """A duration as Django stores it."""
    return None if duration is None else duration // timedelta(microseconds=1)


def retention_of(
    retention: int | None,
    unique_until: Any,
    holds_unique_key: bool,
    unique_for: str,
    step_id: int | None,
) -> Retention:
    """The stored columns that decide how long a task is kept."""
    own = None if retention is None else timedelta(microseconds=retention)
    return Retention(own, loaded(unique_until), bool(holds_unique_key), unique_for, step_id)


def dashed(text: str) -> str:
    """A stored UUID in its usual form, at a tenth of what `UUID` takes for it."""
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def rows(columns: Iterable[Sequence[Any]]) -> str:
    """Rows for `json_each`, SQLite's way to pass many in one parameter."""
    return json.dumps(list(columns))
