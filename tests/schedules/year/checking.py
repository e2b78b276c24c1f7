"""Whether each nominal time has its one occurrence, and each run its one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from taskqueue.models import Occurrence, Schedule, Task
from tests.schedules.year.plans import Plan

RUN = frozenset({"enqueued", "ended"})
OVERLAP = ("The run of ", " has not ended.")
MOST = 5
"""Violations of one schedule that are shown."""


@dataclass(kw_only=True)
class Tally:
    """What there was, of all schedules together, and what was wrong."""

    schedules: int = 0
    nominal_times: int = 0
    """As the oracle says."""
    occurrences: int = 0
    """Rows."""
    run: int = 0
    skipped: int = 0
    """Nominal times, which a row may stand for many of."""
    tasks: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, counted: Tally) -> None:
        """Add another one."""
        for name in ("schedules", "nominal_times", "occurrences", "run", "skipped", "tasks"):
            setattr(self, name, getattr(self, name) + getattr(counted, name))
        self.violations += counted.violations[:MOST]
        if len(counted.violations) > MOST:
            self.violations.append(f"... and {len(counted.violations) - MOST} more of that one")


def check(plan: Plan, ids: Mapping[str, int]) -> Tally:
    """Compare all rows with what the oracle says."""
    tally = Tally()
    for entry in plan.entries:
        tally.add(check_schedule(ids[entry.name], entry.times()))
    return tally


def check_schedule(schedule_id: int, times: Sequence[datetime]) -> Tally:
    """Compare the rows of one schedule with its nominal times."""
    schedule = Schedule.objects.get(id=schedule_id)
    rows = list(Occurrence.objects.filter(schedule_id=schedule_id).order_by("nominal_at", "id"))
    tasks = dict(Task.objects.filter(schedule_id=schedule_id).values_list("id", "nominal_at"))
    found = [
        *wrong_times(rows, times),
        *wrong_runs(rows, tasks),
        *_skipped(schedule, rows),
        *_advance(schedule, times),
    ]
    return Tally(
        schedules=1,
        nominal_times=len(times),
        occurrences=len(rows),
        run=sum(row.count for row in rows if row.status in RUN),
        skipped=sum(row.count for row in rows if row.status == "skipped"),
        tasks=len(tasks),
        violations=[f"{schedule.name}: {text}" for text in found],
    )


def wrong_times(rows: Sequence[Occurrence], times: Sequence[datetime]) -> Iterator[str]:
    """Each nominal time once, and none else; a row may stand for neighbours."""
    counts = Counter(row.nominal_at for row in rows if row.nominal_until is None)
    known = set(times)
    for row in rows:
        if row.requested_by is not None:
            yield f"{row.nominal_at} was requested by {row.requested_by!r}"
        if row.nominal_until is None:
            if row.count != 1:
                yield f"{row.nominal_at} counts {row.count}"
            continue
        span = [at for at in times if row.nominal_at <= at <= row.nominal_until]
        if len(span) != row.count or row.nominal_until not in known:
            yield f"{row.nominal_at} to {row.nominal_until} counts {row.count}, not {len(span)}"
        counts.update(span)
        counts.update({row.nominal_at} - known)
    for at in times:
        if counts[at] != 1:
            yield f"{at} is missing" if not counts[at] else f"{at} is there {counts[at]} times"
    yield from (f"{at} is no nominal time" for at in sorted(counts.keys() - known))
    if (total := sum(row.count for row in rows)) != len(times):
        yield f"{total} nominal times in all, not {len(times)}"


def wrong_runs(rows: Sequence[Occurrence], tasks: Mapping[UUID, datetime | None]) -> Iterator[str]:
    """Each run has one task, of the same nominal time, and there is no other task."""
    seen: set[UUID] = set()
    for row in rows:
        if row.status not in RUN:
            continue
        if row.task_id is None or row.task_id not in tasks:
            yield f"{row.nominal_at} is {row.status}, and its task {row.task_id} is not there"
        elif row.task_id in seen:
            yield f"{row.nominal_at} has the task of another one"
        elif tasks[row.task_id] != row.nominal_at:
            yield f"{row.nominal_at} has a task of {tasks[row.task_id]}"
        if row.task_id is not None:
            seen.add(row.task_id)
    for task_id in tasks.keys() - seen:
        yield f"task {task_id} of {tasks[task_id]} has no occurrence"
    times = Counter(tasks.values())
    yield from (f"{at} has {count} tasks" for at, count in times.items() if count > 1)


def _skipped(schedule: Schedule, rows: Sequence[Occurrence]) -> Iterator[str]:
    """All that is missed is to run: what is skipped overlaps with an earlier run."""
    runs = {row.nominal_at for row in rows if row.status in RUN}
    for row in rows:
        if row.status in RUN:
            continue
        if row.status != "skipped" or row.task_id is not None:
            yield f"{row.nominal_at} is {row.status}, with task {row.task_id}"
        elif schedule.overlap == "allow":
            yield f"{row.nominal_at} was skipped, though nothing is: {row.reason}"
        else:
            begin, end = OVERLAP
            text = row.reason.removeprefix(begin).removesuffix(end)
            if len(text) != len(row.reason) - len(begin) - len(end):
                yield f"{row.nominal_at} was skipped for no good reason: {row.reason}"
            elif not (before := datetime.fromisoformat(text)) < row.nominal_at:
                yield f"{row.nominal_at} was skipped for a later run: {row.reason}"
            elif before not in runs:
                yield f"{row.nominal_at} was skipped for what did not run: {row.reason}"


def _advance(schedule: Schedule, times: Sequence[datetime]) -> Iterator[str]:
    """The row says that all is served, and that nothing is in the way."""
    if times and schedule.served_until != times[-1]:
        yield f"is served until {schedule.served_until}, not {times[-1]}"
    if schedule.next_at is not None:
        yield f"has a next nominal time, {schedule.next_at}, after its last"
    if schedule.trouble:
        yield f"is in trouble: {schedule.trouble}"
    if times and schedule.overlap == "allow" and schedule.last_nominal_at != times[-1]:
        yield f"ran last for {schedule.last_nominal_at}, not {times[-1]}"
