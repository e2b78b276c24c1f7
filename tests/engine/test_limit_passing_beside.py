"""Places that pass on beside other partitions of a limit, and beside other workers."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections

from taskqueue import control
from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.limits import Concurrency
from taskqueue.engine.connections import transaction
from taskqueue.engine.notify import PLACES
from taskqueue.engine.postgresql.limit_pass import pass_on
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.models import Task, Worker
from taskqueue.worker.limited_claims import LimitedClaims
from taskqueue.worker.limits import NO_LIMITS
from taskqueue.worker.quotas import QueueQuotas
from tests.engine.limit_steps import args, open_lanes, repairs, take, take_and_tell
from tests.engine.steps import LEASE, another_connection, outcome
from tests.engine.test_limit_passing import end_and_pass, places, running
from tests.engine.test_workers import registered
from tests.sample.tasks import add

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]


def test_partitions_that_share_a_limit_pass_on_no_more_than_it_allows_now() -> None:
    shared = Concurrency(2, name="shared")
    for name in ("one", "other"):
        own = add.using(concurrency=[Concurrency(1, name=name), shared])
        own.enqueue_many([((1, number), {}) for number in range(3)])
    ended = take_and_tell().passing
    assert len(ended) == 2, "Each waits for a limit of its own."
    control.override_limit("shared", concurrency=1)
    assert end_and_pass(ended, most=100).claimed == []
    assert len(take()) == 1
    control.reset_limit("shared")
    assert len(take()) == 1
    assert repairs() == 0


def test_partitions_that_share_a_limit_pass_on_side_by_side() -> None:
    shared = Concurrency(2, name="shared")
    for name in ("one", "other"):
        own = add.using(concurrency=[Concurrency(1, name=name), shared])
        own.enqueue_many([((1, number), {}) for number in range(3)])
    ended = take_and_tell().passing
    passed = end_and_pass(ended, most=100)
    assert len(passed.claimed) == 2
    assert places() == running() == set(passed.passing)


def test_places_that_a_busy_worker_gives_back_wake_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskqueue.worker.limited_claims.PASSED_ON_FOR", 600.0)
    registered("w2")
    Worker.objects.update(is_idle=True)
    own = add.using(concurrency=Concurrency(1, key="a", name="own"))
    own.enqueue_many([((key, number), {}) for key in (1, 2) for number in range(2)])
    connection = connections["default"]
    claims = LimitedClaims(
        QueueQuotas.parse("default"), worker_name="w1", host="h1", tags=(), lease_duration=LEASE
    )
    claims.see(open_lanes())
    ended = [
        outcome(row, OutcomeKind.SUCCEEDED)
        for row in claims.claim(connection, 2, [], room=NO_LIMITS, free=2, slots=2)
    ]
    Task.objects.filter(status="ready", args=[2, 1]).delete()
    with another_connection() as listener:
        listener.cursor().execute("LISTEN taskqueue")
        with transaction(connection):
            passing = claims.passing(connection, ended, 2)
            record(connection, ended, policy=EndPolicy.of(get_settings()), passing=passing)
            passed = pass_on(connection, passing, claims.passing_terms([], want=2))
            claimed, has_more = claims.take_passed(connection, passed, free=1)
        assert (args(claimed), has_more) == (["[1, 1]"], False)
        session: Any = listener.connection
        [notice] = session.notifies(timeout=60, stop_after=1)
        assert notice.payload == PLACES
