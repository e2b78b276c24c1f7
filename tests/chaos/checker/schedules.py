"""Invariant 11: each nominal time occurs once, and runs or is skipped by its policies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from taskqueue.models import Occurrence
from tests.chaos.timetable import Line
from tests.schedules.year.checking import RUN, wrong_runs, wrong_times

ON_TIME = timedelta(seconds=60)
MOST_AT_ONCE = 500
"""What is served in one transaction; where there is that much, later times have come too."""
CLOCK_SLACK = 2.0
"""Seconds from the moment when an end is written to the one when it is committed."""
OVERLAPS = {
    "skip": (" has not ended.", " waits already."),
    "queue_one": (" waits already.",),
    "queue_all": (),
    "cancel": (" has come.",),
    "allow": (),
}
ENDS = {"cancel": {"succeeded", "cancelled"}}


class Run(NamedTuple):
    """A task of a schedule."""

    nominal_at: datetime | None
    status: str
    enqueued_at: datetime
    finished_at: datetime | None
    noted_at: float | None
    """When its end was written, in seconds since 1970: after an outage, long after the end."""


class Outage(NamedTuple):
    """Nobody could serve schedules then; in seconds since 1970."""

    began_at: float
    healed_at: float


def wrong_schedule(
    line: Line, rows: Sequence[Occurrence], tasks: Mapping[UUID, Run]
) -> Iterator[str]:
    """What is wrong with the occurrences of one schedule, in their order, and with its tasks."""
    if line.fits is None:
        yield from _wrong_chain(line, rows)
    else:
        yield from wrong_times(rows, line.times())
    yield from wrong_runs(rows, {id: run.nominal_at for id, run in tasks.items()})
    yield from _wrong_ends(line, rows, tasks)
    yield from _wrong_missed(line, rows)
    yield from _wrong_overlaps(line, rows, tasks)


def _wrong_chain(line: Line, rows: Sequence[Occurrence]) -> Iterator[str]:
    """Each comes so long after the end of the one before, or after that was found missed."""
    pause = timedelta(seconds=line.pause)
    if not rows:
        yield "never ran"
        return
    for before, row in pairwise(rows):
        end = before.finished_at if before.status in RUN else before.created_at
        if end is None or row.nominal_at != end + pause:
            yield f"{row.nominal_at} does not follow {end} by {line.pause:g} s"
    last = rows[-1]
    end = last.finished_at if last.status in RUN else last.created_at
    if end is not None and (end + pause).timestamp() <= line.until:
        yield f"nothing follows the end at {end}"


def _wrong_ends(line: Line, rows: Sequence[Occurrence], tasks: Mapping[UUID, Run]) -> Iterator[str]:
    good = ENDS.get(line.overlap, {"succeeded"})
    for row in rows:
        if row.status not in ("ended", "skipped"):
            yield f"{row.nominal_at} is still {row.status}"
        elif row.status == "skipped" and not row.reason:
            yield f"{row.nominal_at} was skipped without a reason"
        elif row.task_id in tasks and row.task_status != tasks[row.task_id].status:
            yield f"{row.nominal_at} says {row.task_status}, its task {tasks[row.task_id].status}"
        elif row.status == "ended" and row.task_status not in good:
            yield f"{row.nominal_at} ended as {row.task_status}"


def _wrong_missed(line: Line, rows: Sequence[Occurrence]) -> Iterator[str]:
    """What was served in one transaction is run or skipped as the missed-run policy says."""
    served: dict[datetime, list[Occurrence]] = defaultdict(list)
    for row in rows:
        served[row.created_at].append(row)
    for at, group in served.items():
        has_more = sum(row.count for row in group) >= MOST_AT_ONCE
        for place, row in enumerate(group, start=1):
            is_latest = place == len(group) and not has_more
            expected = _missed_reason(line, at - row.nominal_at, is_latest=is_latest)
            said = row.reason if row.reason.startswith("Missed") else ""
            if not said.startswith(expected) or bool(said) != bool(expected):
                late = (at - row.nominal_at).total_seconds()
                yield (
                    f"{row.nominal_at}, served {late:.1f} s late with {len(group)} others, is "
                    f"{row.status}: {row.reason!r} in place of {expected!r}"
                )


def _missed_reason(line: Line, late: timedelta, *, is_latest: bool) -> str:
    """How the reason begins for which it is skipped as missed; empty where it is not."""
    if is_latest and (late <= ON_TIME or line.missed == "latest"):
        return ""
    if line.missed == "latest":
        return "Missed; the latest one"
    if line.missed == "skip":
        return "Missed: nobody served"
    if line.missed == "window" and late > timedelta(seconds=line.window or 0):
        return "Missed by more than"
    return ""


def _wrong_overlaps(
    line: Line, rows: Sequence[Occurrence], tasks: Mapping[UUID, Run]
) -> Iterator[str]:
    by_time = {run.nominal_at: run for run in tasks.values()}
    for row in rows:
        if row.status != "skipped" or row.reason.startswith("Missed"):
            continue
        ending = next((end for end in OVERLAPS[line.overlap] if row.reason.endswith(end)), None)
        if ending is None:
            yield f"{row.nominal_at} was skipped, which {line.overlap} does not say: {row.reason}"
        elif ending == " has not ended.":
            other = row.reason.removeprefix("The run of ").removesuffix(ending)
            run = by_time.get(datetime.fromisoformat(other))
            if run is None or not run.enqueued_at <= row.created_at:
                yield f"{row.nominal_at} was skipped for one that was not there: {row.reason}"
            elif run.noted_at and run.noted_at < row.created_at.timestamp() - CLOCK_SLACK:
                yield f"{row.nominal_at} was skipped for one that had ended: {row.reason}"
    if line.overlap == "allow":
        return
    runs = sorted(tasks.values(), key=lambda run: run.enqueued_at)
    for before, run in pairwise(runs):
        if before.finished_at is None or run.enqueued_at < before.finished_at:
            yield f"{run.nominal_at} was enqueued before {before.nominal_at} had ended"
        if line.fits is not None and not (before.nominal_at or run.enqueued_at) < (
            run.nominal_at or run.enqueued_at
        ):
            yield f"{run.nominal_at} was enqueued after {before.nominal_at}"


def lateness(
    rows: Sequence[Occurrence], outages: Sequence[Outage], *, settling: float
) -> list[tuple[float, datetime]]:
    """How late each nominal time was served that no outage delayed; `settling` seconds after one
    workers may need to be there again."""
    found = []
    for row in rows:
        due, served = row.nominal_at.timestamp(), row.created_at.timestamp()
        if not any(
            outage.began_at <= served and due <= outage.healed_at + settling for outage in outages
        ):
            found.append((served - due, row.nominal_at))
    return found
