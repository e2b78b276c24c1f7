"""A lease is taken over when it has run out by the database's clock, and only then."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import workers
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.rows import Claimed, Held
from taskqueue.engine.takeover import LOST, expired, take_over
from taskqueue.engine.tally import Tally
from tests.engine.steps import (
    another_connection,
    claim,
    claim_one,
    end,
    lease_of,
    make_due,
    policy,
    promote,
    run_at_once,
    run_out,
    task_of,
    task_statuses,
)
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
NO_GRACE = timedelta(0)


def take_over_now() -> dict[int, str]:
    lost = take_over(connection, policy=policy(), grace=NO_GRACE, tally=Tally())
    return task_statuses(lost)


def renew(claimed: Claimed, seconds: float = 30) -> bool:
    renewal = dialect_for(connection).renew(connection, [Held(claimed.lease_id, seconds, None)])
    return claimed.lease_id in renewal.renewed


def test_a_lease_that_still_runs_is_left_alone() -> None:
    noop.enqueue()
    claimed = claim_one()
    assert take_over_now() == {}
    assert expired(connection, grace=NO_GRACE) == []
    assert lease_of(claimed).status == "running"


def test_a_lease_that_ran_out_is_lost_and_its_task_put_back_after_the_delay() -> None:
    result = noop.using(crash_delay=60).enqueue()
    claimed = claim_one()
    run_out(claimed)
    assert expired(connection, grace=NO_GRACE) == [claimed.lease_id]
    now = dialect_for(connection).now(connection)
    assert take_over_now() == {claimed.lease_id: "retrying"}
    lease, task = lease_of(claimed), task_of(result)
    assert (lease.status, lease.error_class, lease.finished_at is None) == ("lost", LOST, False)
    assert (task.status, task.crashes, task.failures) == ("retrying", 1, 0)
    assert task.run_after >= now + timedelta(seconds=60)
    assert result.errors[0].exception_class_path == LOST
    assert take_over_now() == {}


def test_the_next_attempt_is_anothers_and_the_first_worker_writes_nothing_more() -> None:
    result = noop.using(crash_delay=0).enqueue()
    stale = claim_one(worker="w1")
    run_out(stale)
    take_over_now()
    make_due(result)
    promote()
    fresh = claim_one(worker="w2")
    assert (fresh.task_id, fresh.attempt, fresh.crashes) == (stale.task_id, 2, 1)
    assert not renew(stale)
    assert end(stale, OutcomeKind.SUCCEEDED) is None
    assert end(fresh, OutcomeKind.SUCCEEDED) == "succeeded"


def test_a_task_lost_max_crashes_times_fails_and_stays_failed() -> None:
    result = noop.using(max_crashes=2, crash_delay=0).enqueue()
    for _ in range(2):
        make_due(result)
        promote()
        run_out(claim_one())
        take_over_now()
    task = task_of(result)
    assert (task.status, task.crashes, task.error_class) == ("failed", 2, LOST)
    make_due(result)
    assert promote().promoted == 0
    assert claim() == []


def test_a_lease_that_was_asked_to_stop_is_lost_and_its_task_cancelled() -> None:
    result = noop.enqueue()
    claimed = claim_one()
    result.cancel()
    run_out(claimed)
    assert take_over_now() == {claimed.lease_id: "cancelled"}
    assert (lease_of(claimed).status, task_of(result).status) == ("lost", "cancelled")


def test_only_suspects_are_taken_over_where_they_are_given() -> None:
    noop.enqueue_many([((), {})] * 2)
    first, second = claim()
    run_out(first)
    run_out(second)
    lost = take_over(
        connection, policy=policy(), grace=NO_GRACE, tally=Tally(), suspects={second.lease_id}
    )
    assert task_statuses(lost) == {second.lease_id: "retrying"}
    assert lease_of(first).status == "running"


def test_a_renewal_extends_a_lease_that_ran_out_unnoticed() -> None:
    noop.enqueue()
    claimed = claim_one()
    run_out(claimed)
    assert renew(claimed)
    assert take_over_now() == {}


def test_a_renewal_tells_what_ended_and_what_is_asked() -> None:
    results = noop.enqueue_many([((), {})] * 4)
    claimed = claim()
    end(claimed[0], OutcomeKind.SUCCEEDED)
    end(claimed[1], OutcomeKind.LOST)
    results[2].cancel("enough", by="anna")
    held = [Held(each.lease_id, 90.0, 2.0) for each in claimed]
    renewal = dialect_for(connection).renew(connection, held)
    assert renewal.renewed == {claimed[2].lease_id, claimed[3].lease_id}
    assert renewal.ended == {claimed[0].lease_id, claimed[1].lease_id}
    assert renewal.succeeded == {claimed[0].lease_id}
    assert renewal.stops == ((claimed[2].lease_id, "anna", "enough"),)
    lease = lease_of(claimed[3])
    assert lease.expires_at > lease.claimed_at + timedelta(seconds=60)
    assert lease.started_at < lease.claimed_at


def test_leases_that_a_worker_does_not_know_are_found() -> None:
    noop.enqueue_many([((), {})] * 3)
    before = dialect_for(connection).now(connection) - timedelta(seconds=1)
    mine = claim(2, worker="w1")
    claim(1, worker="w2")
    unknown = workers.unknown_leases
    known = [mine[0].lease_id]
    found = unknown(connection, worker="w1", known=known, since=before)
    assert found == [mine[1].lease_id]
    later = before + timedelta(hours=1)
    assert unknown(connection, worker="w1", known=[], since=later) == []


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_lease_that_is_being_renewed_is_skipped_and_then_safe() -> None:
    noop.enqueue()
    claimed = claim_one()
    run_out(claimed)
    with another_connection() as taker:
        with transaction.atomic():
            assert renew(claimed)
            assert take_over(taker, policy=policy(), grace=NO_GRACE, tally=Tally()) == {}
        assert take_over(taker, policy=policy(), grace=NO_GRACE, tally=Tally()) == {}
    assert lease_of(claimed).status == "running"


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_lease_that_is_being_recorded_is_busy_and_not_ended() -> None:
    noop.enqueue()
    claimed = claim_one()
    with another_connection() as pinger, transaction.atomic():
        assert end(claimed, OutcomeKind.SUCCEEDED) == "succeeded"
        renewal = dialect_for(pinger).renew(pinger, [Held(claimed.lease_id, 30.0, None)])
    assert (renewal.renewed, renewal.ended) == (frozenset(), frozenset())


@pytest.mark.postgresql_only
def test_nothing_is_taken_over_within_a_lease_of_the_servers_own_start() -> None:
    noop.enqueue()
    run_out(claim_one())
    century = timedelta(days=36500)
    assert take_over(connection, policy=policy(), grace=century, tally=Tally()) == {}
    assert expired(connection, grace=century) == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_renewals_and_takeovers_at_once_agree_on_who_holds_each_task() -> None:
    noop.enqueue_many([((), {})] * 200)
    claimed = claim(200)
    for each in claimed:
        run_out(each)
    lost: dict[int, str] = {}
    renewed: set[int] = set()

    def take() -> None:
        for _ in range(5):
            with transaction.atomic():
                lost.update(take_over_now())

    def ping() -> None:
        for start in range(0, 200, 10):
            held = [Held(each.lease_id, 30.0, None) for each in claimed[start : start + 10]]
            with transaction.atomic():
                renewed.update(dialect_for(connection).renew(connection, held).renewed)

    run_at_once([take, ping, take, ping])
    assert lost.keys() | renewed == {each.lease_id for each in claimed}
    for each in claimed:
        is_lost = each.lease_id in lost
        assert lease_of(each).status == ("lost" if is_lost else "running")
        assert task_of(each).status == ("retrying" if is_lost else "running")
        assert task_of(each).crashes == is_lost
