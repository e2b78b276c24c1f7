"""What is shown of a schedule, of its state and of its times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from taskqueue.declarations.redaction import redacted
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.schedules.reading import conditions, due_at, rule_text
from taskqueue.engine.schedules.runs import resting_reason
from taskqueue.management.cli.output import shown, told
from taskqueue.models import Occurrence, Schedule, Task
from taskqueue.models.occurrence import OPEN

COLUMNS = (
    "options", "missed", "missed_window", "overlap", "pause_after_failures", "source",
    "is_enabled", "paused_at", "paused_by", "pause_reason", "removed_at", "trouble",
    "failures_in_row",
)  # fmt: skip
HIDDEN = "hidden: no definition of this name is known here"
ENDED = ("last_status", "last_finished_at", "last_error", "last_return_value")
MADE = ("served_until", "created_at", "changed_at")


def row_of(schedule: Schedule, statuses: Mapping[UUID, str], *, now: datetime) -> dict[str, Any]:
    """All that may be shown of a schedule; `statuses` are those of the tasks that still exist."""
    last = schedule.last_task_id
    return {
        "name": schedule.name,
        "task": schedule.task_name,
        "rule_text": rule_text(schedule),
        "rule": schedule.rule,
        "state": state_of(schedule, now),
        "why": resting_reason(schedule),
        **_arguments(schedule),
        **{name: getattr(schedule, name) for name in COLUMNS},
        "next_at": due_at(schedule),
        "last_nominal_at": schedule.last_nominal_at,
        "last_task": last,
        # A task that has been pruned had ended.
        "last_task_status": "" if last is None else statuses.get(last, schedule.last_status),
        **{name: getattr(schedule, name) for name in ENDED + MADE},
    }


def statuses_of(task_ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """The statuses of the tasks that still exist."""
    tasks = Task.objects.using(project_connection().alias)
    known = tasks.filter(id__in={each for each in task_ids if each is not None})
    return dict(known.values_list("id", "status"))


def state_of(schedule: Schedule, now: datetime) -> str:
    """One word for how it stands; the worst, where several fit."""
    return next(iter(conditions(schedule, now)), "active")


def now() -> datetime:
    """The moment by the database's clock."""
    connection = project_connection()
    return dialect_for(connection).now(connection)


def utc(moment: datetime | None) -> str:
    """The moment in a column that is headed by its zone: in seconds, or finer where it is."""
    if moment is None:
        return ""
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat(" ", "milliseconds" if naive.microsecond else "seconds")


def aligned(lines: Iterable[Sequence[str]]) -> list[str]:
    """Lines of equally many cells, as wide as the widest of a column; the last is not cut."""
    cells = [[*map(shown, line[:-1]), told(line[-1])] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def has_open(schedule: Schedule) -> bool:
    """Whether a run of it has not ended, as far as anybody who serves schedules has seen."""
    runs = Occurrence.objects.using(project_connection().alias)
    return runs.filter(schedule_id=schedule.id, status__in=OPEN).exists()


def _arguments(schedule: Schedule) -> dict[str, Any]:
    try:
        visible = redacted(schedule.task_name, schedule.args, schedule.kwargs)
    except Exception:  # The project's tasks cannot be imported; all else is still to be seen.
        visible = None
    if visible is None:
        return {"args": HIDDEN, "kwargs": HIDDEN}
    return {"args": visible.args, "kwargs": visible.kwargs}
