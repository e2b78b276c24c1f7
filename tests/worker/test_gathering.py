"""Places under limits that a worker leaves to others, so that they pass on in larger batches."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from django.db import connections

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.declarations.limits import Concurrency
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Claimed
from taskqueue.models import Lease
from taskqueue.worker import gathering
from taskqueue.worker.gathering import Gathering
from taskqueue.worker.limited_claims import LimitedClaims
from taskqueue.worker.limits import NO_LIMITS
from taskqueue.worker.quotas import QueueQuotas
from tests.engine.limit_steps import open_lanes, repairs
from tests.engine.steps import LEASE
from tests.sample.tasks import add

SLOTS, MOST = 8, 24
# After the longest first pause.
LATE = 2 * gathering.FIRST_PAUSE


def after_a_pause(seconds: float, *, places: int, body: float = 0.005) -> bool:
    """Whether a worker leaves its places, one of whose requests took so long."""
    own = Gathering()
    own.seconds = seconds
    assert not own.leaves(places, most=MOST, slots=SLOTS, body=body, now=0.0)
    return own.leaves(places, most=MOST, slots=SLOTS, body=body, now=LATE)


def test_few_places_are_left_while_requests_take_longer_than_bodies() -> None:
    assert after_a_pause(0.02, places=12)
    assert not after_a_pause(0.01, places=12), "More workers run more bodies at once."
    assert not after_a_pause(0.02, places=12, body=0.05)


def test_many_places_are_kept() -> None:
    assert not after_a_pause(0.02, places=13)


def test_each_pause_is_longer_than_the_one_before() -> None:
    own = Gathering()
    own.seconds = 1.0
    left: list[float] = []
    for tenth in range(10 * 600):
        if own.leaves(1, most=MOST, slots=SLOTS, body=0.0, now=tenth / 10):
            left.append(tenth / 10)
    pauses = [after - before for before, after in pairwise(left)]
    assert 8 <= len(left) <= 30
    assert pauses[0] < gathering.LONGEST_PAUSE / 4 < pauses[-1]
    assert own.rests(left[-1])
    assert not own.rests(left[-1] + gathering.REST)


class PlayedClaims:
    """The claims of a worker with eight slots, whose requests take a second."""

    def __init__(self, name: str) -> None:
        self.connection = connections["default"]
        self.claims = LimitedClaims(
            QueueQuotas.parse("default"), worker_name=name, host="h1", tags=(), lease_duration=LEASE
        )
        self.claims.gathering.seconds = 1.0

    def claim(self, want: int = MOST) -> list[Claimed]:
        self.claims.see(open_lanes())
        return self.claims.claim(self.connection, want, [], room=NO_LIMITS, free=SLOTS, slots=SLOTS)

    def end(self, rows: list[Claimed]) -> list[Claimed] | None:
        """Record these as succeeded; what takes their places, None where they were left."""
        outcomes = [
            Outcome(row.lease_id, OutcomeKind.SUCCEEDED, started=0.001, ended=0.002) for row in rows
        ]
        leaves = self.claims.leaves_places(outcomes, slots=SLOTS)
        passing = {} if leaves else self.claims.passing(self.connection, outcomes, MOST)
        policy = EndPolicy.of(get_settings())
        with transaction(self.connection):
            recorded = record(self.connection, outcomes, policy=policy, passing=passing)
            if leaves:
                return None
            return self.claims.pass_on(
                self.connection, passing, recorded, [], want=MOST, free=SLOTS
            )[0]


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_worker_with_room_takes_the_places_that_another_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathering, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(gathering, "REST", 600.0)
    own = add.using(concurrency=Concurrency(1, key="a", name="own"))
    own.enqueue_many([((key, number), {}) for key in range(12) for number in range(9)])
    few, many = PlayedClaims("w1"), PlayedClaims("w2")
    held = few.claim()
    assert len(held) == 12
    passed = few.end(held)
    assert passed is not None, "Something else might have been there."
    assert len(passed) == 12
    assert few.end(passed) is None
    assert few.claim() == []
    assert few.claims.last.is_left
    assert few.claims.take_opens_at() < time.monotonic() + 600
    assert len(many.claim()) == 12
    assert Lease.objects.filter(finished_at=None, worker_id="w2").count() == 12

    few.claims.gathering.rests_until = 0.0
    assert few.claim() == [], "All places are taken."
    assert repairs() == 0


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_places_that_nobody_else_takes_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    own = add.using(concurrency=Concurrency(1, key="a", name="own"))
    own.enqueue_many([((key, number), {}) for key in range(2) for number in range(9)])
    alone = PlayedClaims("w1")
    passed = alone.end(alone.claim())
    assert passed is not None
    alone.claims.gathering.rests_until = time.monotonic() + 600
    assert alone.end(passed) is None
    assert alone.claim() == []
    alone.claims.gathering.rests_until = 0.0
    assert len(alone.claim()) == 2
