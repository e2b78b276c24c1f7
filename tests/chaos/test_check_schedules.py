"""The checker finds occurrences that violate the policies, and none from real workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from taskqueue.models import Occurrence
from taskqueue.rules import AfterEnd, Every
from tests.chaos.checker.schedules import Outage, Run, lateness, wrong_schedule
from tests.chaos.timetable import Line
from tests.sharing_out import DATABASE
from tests.worker_process import ROOT

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
LINE = Line(
    name="minutely",
    rule=lambda end: Every(60, end=end),
    fits=lambda second: second % 60 == 0,
    missed="skip",
    overlap="skip",
    since=NOON.timestamp() - 1,
    until=(NOON + 3 * MINUTE).timestamp(),
)
NOT_ENDED = "The run of 2026-06-01T12:00:00+00:00 has not ended."
MISSED = "Missed: nobody served the schedule in time."


def at(minutes: float) -> datetime:
    return NOON + minutes * MINUTE


def run(minutes: float, *, late: float = 0, lasts: float = 0.5) -> tuple[Occurrence, Run]:
    """One that ran, and its task; all in minutes."""
    served, ended = at(minutes + late), at(minutes + late + lasts)
    row = Occurrence(
        nominal_at=at(minutes), created_at=served, status="ended", task_status="succeeded",
        task_id=UUID(int=int(minutes * 100) + 1), finished_at=ended,
    )  # fmt: skip
    return row, Run(at(minutes), "succeeded", served, ended, ended.timestamp())


def skipped(minutes: float, reason: str, *, served: float | None = None) -> tuple[Occurrence, None]:
    """One that did not, and why."""
    created_at = at(minutes if served is None else served)
    return Occurrence(
        nominal_at=at(minutes), created_at=created_at, status="skipped", reason=reason
    ), None


def found(line: Line, *pairs: tuple[Occurrence, Run | None]) -> list[str]:
    tasks = {row.task_id: task for row, task in pairs if row.task_id and task}
    return list(wrong_schedule(line, [row for row, _ in pairs], tasks))


LONG = run(0, lasts=1.5)
GOOD = (LONG, skipped(1, NOT_ENDED), run(2), run(3))


def test_runs_in_time_that_skip_overlaps_are_correct() -> None:
    assert found(LINE, *GOOD) == []


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        (GOOD[:3], "is missing"),
        ((*GOOD, run(2)), "is there 2 times"),
        ((run(0), skipped(1, NOT_ENDED), *GOOD[2:]), "for one that had ended"),
        ((LONG, skipped(1, NOT_ENDED.replace("12:00", "11:00")), *GOOD[2:]), "was not there"),
        ((LONG, run(1), *GOOD[2:]), "was enqueued before"),
        ((LONG, skipped(1, "The run of it has come."), *GOOD[2:]), "does not say"),
        ((LONG, skipped(1, ""), *GOOD[2:]), "without a reason"),
        ((LONG, skipped(1, MISSED), *GOOD[2:]), "in place of ''"),
        ((*GOOD[:2], run(2, late=1.5), skipped(3, MISSED, served=3.5)), "in place of ''"),
        ((*GOOD[:2], run(2, late=1.5), run(3, late=0.5)), "in place of 'Missed: nobody"),
        ((*GOOD[:3], run(3, late=1.5)), "in place of 'Missed: nobody"),
    ],
)
def test_a_wrong_run_of_a_schedule_is_reported(
    pairs: Sequence[tuple[Occurrence, Run | None]], says: str
) -> None:
    assert any(says in text for text in found(LINE, *pairs))


@pytest.mark.parametrize(
    ("missed", "earlier", "reason"),
    [
        ("latest", "Missed; the latest one makes up for it.", ""),
        ("skip", MISSED, MISSED),
        ("window", "Missed by more than 120 s.", ""),
    ],
)
def test_missed_times_must_follow_the_policy(missed: str, earlier: str, reason: str) -> None:
    line = replace(LINE, missed=missed, window=120.0, overlap="allow", since=NOON.timestamp() + 1)
    last = skipped(3, reason, served=4.5) if reason else run(3, late=1.5)
    group = [skipped(minute, earlier, served=4.5) for minute in (1, 2)]

    assert found(line, *group, last) == []
    assert found(replace(line, missed="all"), *group, last)


def test_an_interval_is_counted_from_the_end() -> None:
    line = Line(
        name="after", rule=lambda end: AfterEnd(60, end=end), pause=60.0, overlap="skip",
        until=at(3).timestamp(),
    )  # fmt: skip
    assert found(line, run(0, lasts=0.5), run(1.5, lasts=1)) == []
    assert "does not follow" in found(line, run(0, lasts=0.5), run(1.6, lasts=1))[0]
    assert "nothing follows" in found(line, run(0, lasts=0.5))[0]


def test_lateness_counts_only_while_somebody_could_serve() -> None:
    rows = [run(0, late=0.1)[0], run(1, late=1)[0]]
    outage = Outage(at(0.9).timestamp(), at(1.9).timestamp())
    assert lateness(rows, [outage], settling=1) == [(6.0, NOON)]


@pytest.mark.slow
def test_schedules_of_seconds_are_exact_while_workers_and_the_server_are_killed() -> None:
    command = [sys.executable, "-m", "tests.chaos", "--database", DATABASE, "--only", "schedules"]
    ended = subprocess.run(
        command, cwd=ROOT, env=dict(os.environ), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=200,
    )  # fmt: skip
    print(ended.stdout, ended.stderr)
    assert ended.returncode == 0
    assert ended.stdout.rstrip().endswith("No violation.")
