"""Tables of plain text: the findings, and how long they took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Min

from project import tasks
from project.demo.work import DELAY, Work
from taskqueue import rules
from taskqueue.models import Schedule, Task, Workflow
from taskqueue.results.workflows import WorkflowRun

COLUMNS = ("files", "lines", "words", "imports")
Row = Sequence[object]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast the files were read, from the first start to the last end."""

    scans: int
    duration: timedelta

    @property
    def per_second(self) -> float:
        return self.scans / max(self.duration.total_seconds(), 0.001)


def measure_pace() -> Pace:
    """Read it off the rows of the tasks."""
    scans = Task.objects.filter(name=tasks.scan.name).aggregate(
        number=Count("id"), began=Min("started_at"), ended=Max("finished_at")
    )
    if scans["began"] is None or scans["ended"] is None:
        return Pace(scans=0, duration=timedelta(0))
    return Pace(scans=scans["number"], duration=scans["ended"] - scans["began"])


def describe_findings(findings: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of three tables: by kind of file, the most imported, the largest."""
    kinds = sorted(findings["kinds"].items(), key=lambda item: -item[1]["lines"])
    rows = [(kind, *(count.get(name, 0) for name in COLUMNS)) for kind, count in kinds]
    total = ("all", *(sum(row[column] for row in rows) for column in range(1, len(COLUMNS) + 1)))
    yield from table(("kind", *COLUMNS), [*rows, total])
    if findings["modules"]:
        yield ""
        yield from table(("most imported modules", "imports"), findings["modules"])
    yield ""
    yield from table(("largest files", "lines"), findings["largest"])


def describe_reduction(run: WorkflowRun, direct: dict[str, int]) -> Iterator[str]:
    """Yield the table that the workflow came to, beside a direct count, and how it came to it."""
    rows = [(name, number, direct.get(name, 0)) for name, number in run.return_value]
    yield from table(("most imported by taskqueue", "workflow", "plain loop"), rows)
    row = Workflow.objects.get(id=run.id)
    assert row.finished_at is not None
    yield (
        f"workflow {run.name}: {run.status}, {run.step('read').ended:,} files, one task a file, in"
        f" {_seconds(row.finished_at - row.created_at)}"
    )


def describe_work(work: Work, *, concurrency: int) -> Iterator[str]:
    """Yield the lines that say how it went. Expects the work to be read anew."""
    pace = measure_pace()
    yield (
        f"{pace.scans:,} files in {_seconds(pace.duration)} on {connection.display_name},"
        f" one task a file: {pace.per_second:,.0f} tasks a second, {concurrency} at a time"
    )
    yield f"retried  {work.retried.name}: {work.retried.status} at attempt {work.retried.attempts}"
    if work.delayed.started_at:
        waited = _seconds(work.delayed.started_at - work.delayed.enqueued_at)
        yield f"delayed  {work.delayed.name}: by {_seconds(DELAY)}, and started after {waited}"
    yield f"failed   {work.doomed.name}: {work.doomed.status}, as it is meant to"


def describe_schedule(schedule: Schedule) -> Iterator[str]:
    """Yield the line that says what the schedule has done, and will do."""
    text = rules.from_json(schedule.rule).text
    runs = schedule.occurrences.filter(task__isnull=False).count()
    coming = f"the next one at {schedule.next_at:%H:%M:%S} UTC" if schedule.next_at else "no more"
    yield (
        f"schedule {schedule.name} ({text[0].lower()}{text[1:]}): {runs} so far, the last one"
        f" {schedule.last_status}, {coming}"
    )


def table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table: the first column is text, the others are numbers."""
    cells = [[str(title) for title in head], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for number, row in enumerate(cells):
        first = row[0].ljust(widths[0])
        others = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  ".join((first, *others))
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.1f} s"
