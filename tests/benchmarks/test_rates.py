"""The rate of several workers is one of the time in which all of them were at work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from benchmarks.rates import RATE, TRIES, Apart, rate_together, until_together
from taskqueue.engine.statement import fetch
from taskqueue.models import Lease
from tests.sample.tasks import noop

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def drained(*workers: Sequence[float]) -> float:
    """The rate of workers that claimed at the first of these seconds, and ended a task at each."""
    for number, (claimed, *ended) in enumerate(workers):
        for second in ended:
            Lease.objects.create(
                task_id=noop.enqueue().id,
                worker_id=f"w{number}",
                attempt=1,
                status="succeeded",
                claimed_at=BEGAN + timedelta(seconds=claimed),
                expires_at=BEGAN,
                finished_at=BEGAN + timedelta(seconds=second),
            )
    return rate_together(fetch(connection, RATE), max(2, len(workers)))


@pytest.mark.postgresql_only
@pytest.mark.django_db
def test_the_rate_of_two_workers_counts_only_while_both_work() -> None:
    assert drained([0, 1, 2, 3, 4], [2, 3, 4, 5, 6, 7]) == 5 / 2


@pytest.mark.postgresql_only
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([], "No task was claimed"),
        ([[0, 1, 2]], "1 of 2 workers"),
        ([[0, 1, 2], [3, 4, 5]], "0 of 4 tasks ended while all 2"),
        ([[0, *range(1, 21)], [19.5, *range(21, 41)]], "1 of 40 tasks ended while all 2"),
    ],
)
def test_workers_that_did_not_work_together_have_no_rate(
    workers: list[list[float]], said: str
) -> None:
    with pytest.raises(Apart, match=said):
        drained(*workers)


def test_a_drain_is_made_again_until_its_workers_work_together() -> None:
    said: list[str] = []
    results = iter([Apart("Apart."), Apart("Apart."), 7.0])

    def drain() -> float:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    assert until_together(drain, said.append) == 7.0
    assert said == ["  Apart. The drain is made again."] * 2
    results = iter([Apart("Apart.")] * TRIES)
    with pytest.raises(Apart):
        until_together(drain, said.append)
    assert next(results, None) is None
