"""The checker of the race sees what is missing, twice there, wrong, or without its task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from taskqueue.models import Occurrence
from tests.schedules.year.checking import wrong_runs, wrong_times

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOURS = [NOON + timedelta(hours=number) for number in range(6)]


def row(hour: float, *, last: int | None = None, count: int = 1, **values: object) -> Occurrence:
    until = None if last is None else HOURS[last]
    at = NOON + timedelta(hours=hour)
    return Occurrence(
        nominal_at=at, nominal_until=until, count=count, **{"status": "skipped", **values}
    )


ALL = [row(0), row(1), row(2, last=4, count=3), row(5)]


def test_each_nominal_time_once_is_right() -> None:
    assert list(wrong_times(ALL, HOURS)) == []


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (ALL[1:], "12:00:00+00:00 is missing"),
        ([*ALL, row(5)], "is there 2 times"),
        ([*ALL, row(3)], "15:00:00+00:00 is there 2 times"),
        ([*ALL, row(0.5)], "is no nominal time"),
        ([*ALL[:2], row(2, last=4, count=2), row(5)], "counts 2, not 3"),
        ([*ALL[:2], row(2, last=3, count=2), row(5)], "16:00:00+00:00 is missing"),
        ([row(0, count=2), *ALL[1:]], "counts 2"),
        ([row(0, requested_by="ada"), *ALL[1:]], "requested by 'ada'"),
    ],
)
def test_wrong_times_of_a_year_are_reported(rows: Sequence[Occurrence], says: str) -> None:
    assert any(says in text for text in wrong_times(rows, HOURS))


FIRST, SECOND = UUID(int=1), UUID(int=2)
RUNS = [row(0, status="ended", task_id=FIRST), row(1, status="enqueued", task_id=SECOND)]
TASKS = {FIRST: HOURS[0], SECOND: HOURS[1]}


def test_one_task_for_each_run_is_right() -> None:
    assert list(wrong_runs([*RUNS, row(2)], TASKS)) == []


@pytest.mark.parametrize(
    ("rows", "tasks", "says"),
    [
        (RUNS[:1], TASKS, "has no occurrence"),
        (RUNS, {FIRST: HOURS[0]}, "is not there"),
        ([row(0, status="ended")], {}, "is not there"),
        (RUNS, {FIRST: HOURS[0], SECOND: HOURS[2]}, "has a task of"),
        (RUNS, {FIRST: HOURS[0], SECOND: None}, "has a task of None"),
        ([RUNS[0], row(1, status="ended", task_id=FIRST)], {FIRST: HOURS[0]}, "of another one"),
        (RUNS, TASKS | {UUID(int=3): HOURS[0]}, "has 2 tasks"),
    ],
)
def test_wrong_runs_of_a_year_are_reported(
    rows: Sequence[Occurrence], tasks: dict[UUID, datetime | None], says: str
) -> None:
    assert any(says in text for text in wrong_runs(rows, tasks))
