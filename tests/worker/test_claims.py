"""When a worker looks for tasks that only some workers may take."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from django.db import connections

from taskqueue.engine.apart import claim_apart
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import leave_session, own_session
from taskqueue.worker import apart_claims
from taskqueue.worker.apart_claims import APART_INTERVAL, FIRST_APART_PAUSE
from taskqueue.worker.claims import Claims
from taskqueue.worker.quotas import QueueQuotas
from tests.engine.steps import LEASE
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """Stands still unless it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(apart_claims, "time", clock)
    return clock


@pytest.fixture
def own_session_of_worker() -> Iterator[None]:
    """The session is the worker's own, as it finds it on PostgreSQL without a pooler."""
    own_session(connections["default"])
    yield
    leave_session(connections["default"])


def claims_of(name: str) -> Claims:
    return Claims(QueueQuotas(), worker_name=name, slots=1, lease_duration=LEASE)


def look(worker: Claims) -> list[Claimed]:
    return worker.look_and_claim(connections["default"], 1, [])


@pytest.mark.parametrize("seconds", [1.0, 3600.0])
def test_a_slow_look_that_found_none_is_not_repeated_for_a_bounded_while(
    clock: Clock, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_long(*args: Any, **options: Any) -> list[Claimed]:
        clock.now += seconds
        return claim_apart(*args, **options)

    worker, task = claims_of("a"), add.using(workers=2)
    task.enqueue(1)
    assert len(look(worker)) == 1
    with monkeypatch.context() as patch:
        patch.setattr(apart_claims, "claim_apart", take_long)
        assert look(worker) == [], "it has its part"
    task.enqueue(2)
    assert look(worker) == []
    clock.now += FIRST_APART_PAUSE
    assert len(look(worker)) == 1


@pytest.mark.postgresql_only
@pytest.mark.direct_only
def test_a_busy_worker_looks_for_such_tasks_at_intervals_and_once_there_is_nothing_else(
    clock: Clock, own_session_of_worker: None
) -> None:
    worker = claims_of("a")
    add.enqueue_many([((number, 1), {}) for number in range(3)])
    assert [row.args for row in look(worker)] == ["[0, 1]"]
    mine = add.using(worker_names=["a"])
    mine.enqueue(101, 1)
    assert [row.args for row in look(worker)] == ["[1, 1]"]
    clock.now += APART_INTERVAL
    assert [row.args for row in look(worker)] == ["[101, 1]"]
    assert [row.args for row in look(worker)] == ["[2, 1]"]
    mine.enqueue(102, 1)
    assert [row.args for row in look(worker)] == ["[102, 1]"]


def test_slow_looks_in_a_row_take_a_small_share_of_the_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[float] = []

    def take_long(*args: Any, **options: Any) -> list[Claimed]:
        clock.now += 1
        looked_at.append(clock.now)
        return []

    monkeypatch.setattr(apart_claims, "claim_apart", take_long)
    worker = claims_of("a")
    add.using(workers=2).enqueue(1)
    for _ in range(1000):
        look(worker)
        clock.now += 0.1
    # After the first it looks again soon.
    assert looked_at[1] - looked_at[0] < 1 + FIRST_APART_PAUSE + 1
    assert min(b - a for a, b in pairwise(looked_at[1:])) >= 20


def test_a_look_that_was_not_slow_is_repeated(clock: Clock) -> None:
    worker, task = claims_of("a"), add.using(workers=2)
    task.enqueue(1)
    assert len(look(worker)) == 1
    assert look(worker) == []
    task.enqueue(2)
    assert len(look(worker)) == 1
