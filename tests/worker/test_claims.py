"""When a worker looks for tasks that only some workers may take."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections

from taskqueue.engine.apart import claim_apart
from taskqueue.engine.rows import Claimed
from taskqueue.worker import claims
from taskqueue.worker.claims import LONGEST_APART_PAUSE, Claims
from taskqueue.worker.lanes import Lanes, QueueChoice
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
    monkeypatch.setattr(claims, "time", clock)
    return clock


def claims_of(name: str) -> Claims:
    return Claims(Lanes(QueueChoice({})), worker_name=name, slots=1, lease_duration=LEASE)


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
        patch.setattr(claims, "claim_apart", take_long)
        assert look(worker) == [], "it has its part"
    task.enqueue(2)
    assert look(worker) == []
    clock.now += LONGEST_APART_PAUSE
    assert len(look(worker)) == 1


def test_a_look_that_was_not_slow_is_repeated(clock: Clock) -> None:
    worker, task = claims_of("a"), add.using(workers=2)
    task.enqueue(1)
    assert len(look(worker)) == 1
    assert look(worker) == []
    task.enqueue(2)
    assert len(look(worker)) == 1
