"""Duties that a worker serves between its tasks, and how long it may sleep until the next."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import InternalError, connection
from django.db.transaction import atomic, set_rollback
from django.test.utils import CaptureQueriesContext

from taskqueue import alerts
from taskqueue.conf import parse
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.forecast import Forecast
from taskqueue.engine.pruning import AUDIT
from taskqueue.engine.rows import Held
from taskqueue.engine.tally import Tally
from taskqueue.models import Audit, Lease, Task
from taskqueue.worker.duties import Duties
from taskqueue.worker.duty_turn import Timed, Turn
from taskqueue.worker.periodic_duties import PeriodicDuties
from taskqueue.worker.takeover import SECOND_LOOK
from tests.engine.steps import (
    HOUR,
    claim,
    claim_one,
    end,
    lease_of,
    make_due,
    past,
    run_out,
    task_of,
)
from tests.sample.tasks import noop
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db


def duties(**changes: float) -> Duties:
    settings, mistakes = parse({"LEASE_DURATION": 1, "PING_INTERVAL": 0.3, **changes})
    assert not mistakes
    return Duties(settings, worker_id=0, tally=Tally())


def serve(own: Duties) -> float:
    """One step; how many seconds until the next."""
    own.step(connection, time.monotonic())
    return own.next_at - time.monotonic()


def is_over(second: float) -> bool:
    return time.monotonic() >= second


def test_one_step_promotes_ends_and_prunes() -> None:
    old = noop.using(retention=0).enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    due, overdue = noop.using(run_after=60).enqueue(), noop.using(deadline=60).enqueue()
    make_due(due)
    Task.objects.filter(id=overdue.id).update(deadline_at=past())
    assert duties().step(connection, time.monotonic())
    assert not Task.objects.filter(id=old.id).exists()
    assert (task_of(due).status, task_of(overdue).status) == ("ready", "failed")


def test_a_turn_that_took_long_leaves_timed_duties_to_the_next_ones() -> None:
    old = noop.using(retention=0).enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    whole, short = duties(), duties()
    short.periodic._seconds = 0.0
    with CaptureQueriesContext(connection) as all_at_once, atomic():
        serve(whole)
        set_rollback(True)
    assert not whole.periodic.is_cut
    turns = []
    while not turns or short.periodic.is_cut:
        with CaptureQueriesContext(connection) as queries:
            assert serve(short) <= 0 or not short.periodic.is_cut
        turns.append(len(queries))
        assert len(turns) < 50
    assert len(turns) > 5
    assert max(turns) < len(all_at_once) / 2
    assert not Task.objects.filter(id=old.id).exists()


def test_duties_that_leave_something_each_time_do_not_keep_a_round_from_its_end() -> None:
    periodic: Any = PeriodicDuties(0.0)
    periodic._duties = [Timed(lambda _: True, every=10, again=0.1) for _ in range(2)]
    ends = []
    for number in range(4):
        periodic.step(Turn(connection, number, Forecast(0, {}), 0.0))
        ends.append(not periodic.is_cut)
    assert ends == [False, True, False, True]


def test_with_nothing_to_come_the_next_step_is_a_takeover_interval_away() -> None:
    own = duties()
    before = time.monotonic()
    assert not own.step(connection, before)
    assert before + 2 <= own.next_at <= time.monotonic() + 2


def test_the_next_step_comes_when_a_task_falls_due() -> None:
    own, before = duties(TAKEOVER_INTERVAL=3600), time.monotonic()
    noop.using(run_after=60).enqueue()
    serve(own)
    assert before + 59.9 <= own.next_at <= time.monotonic() + 60.1


def test_the_audit_is_kept_for_a_year_and_looked_at_once_an_hour() -> None:
    own = duties()
    serve(own)
    for verb, age in (("old", AUDIT.kept + HOUR), ("young", AUDIT.kept - HOUR)):
        Audit.objects.create(verb=verb, subject="s")
        Audit.objects.filter(verb=verb).update(at=past(age))
    serve(own)
    assert Audit.objects.count() == 2
    own.step(connection, time.monotonic() + HOUR.total_seconds())
    assert [audit.verb for audit in Audit.objects.all()] == ["young"]


def test_an_attempt_that_seems_wedged_is_marked_within_a_minute() -> None:
    noop.enqueue_many([((), {})] * 20)
    for claimed in claim(20):
        end(claimed, OutcomeKind.SUCCEEDED)
    own = duties()
    serve(own)
    noop.enqueue()
    claimed = claim_one()
    Lease.objects.filter(id=claimed.lease_id).update(started_at=past())
    serve(own)
    assert lease_of(claimed).wedged_at is None
    own.step(connection, time.monotonic() + 60)
    assert lease_of(claimed).wedged_at is not None


@pytest.mark.slow
def test_a_lease_that_ran_out_is_taken_over() -> None:
    result = noop.enqueue()
    run_out(claim_one())
    own = duties()
    wait_until(lambda: serve(own) and task_of(result).status == "retrying", timeout=60)


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_on_sqlite_a_lease_is_looked_at_twice_before_it_is_taken_over() -> None:
    noop.enqueue()
    claimed = claim_one()
    run_out(claimed)
    own = duties()
    first = time.monotonic()
    assert serve(own) <= SECOND_LOOK / 4
    wait_until(lambda: serve(own) and lease_of(claimed).status == "lost", timeout=60)
    assert time.monotonic() - first >= SECOND_LOOK


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_on_sqlite_a_lease_that_was_renewed_is_looked_at_twice_again() -> None:
    """Else a body that held the write lock a second time would be taken over at once."""
    noop.enqueue()
    claimed = claim_one()
    run_out(claimed)
    own = duties()
    serve(own)
    seen = time.monotonic()
    dialect_for(connection).renew(connection, [Held(claimed.lease_id, 60.0, None)])
    before = time.monotonic()
    own.step(connection, before)
    assert own.next_at - before > SECOND_LOOK
    wait_until(lambda: is_over(seen + SECOND_LOOK))
    run_out(claimed)
    serve(own)
    assert lease_of(claimed).status == "running"


def server_is_older_than_a_lease() -> bool:
    """Leases are spared for that long after the start of the server, too."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time() + interval '1 s' < clock_timestamp()")
        [(is_older,)] = cursor.fetchall()
    return bool(is_older)


@pytest.mark.postgresql_only
def test_no_lease_is_taken_over_for_a_leases_time_after_an_outage() -> None:
    wait_until(server_is_older_than_a_lease)
    own, now = duties(), time.monotonic()
    noop.enqueue()
    claimed = claim_one()
    run_out(claimed)
    own.spare()
    own.step(connection, now)

    own.step(connection, now + 0.9)
    assert lease_of(claimed).status == "running"
    own.step(connection, now + 1.1)
    assert lease_of(claimed).status == "lost"


@pytest.mark.postgresql_only
def test_leases_are_spared_on_a_host_that_has_just_booted() -> None:
    """The monotonic clock may begin near zero there."""
    own = duties()
    noop.enqueue()
    claimed = claim_one()
    run_out(claimed)
    own.spare()
    own.step(connection, 0.5)
    own.step(connection, 0.9)
    assert lease_of(claimed).status == "running"


@pytest.mark.postgresql_only
def test_repeated_outages_spare_leases_half_of_the_time_at_most() -> None:
    wait_until(server_is_older_than_a_lease)
    own, now = duties(), time.monotonic()
    noop.enqueue()
    claimed = claim_one()
    run_out(claimed)
    for moment in (now, now + 0.9):
        own.spare()
        own.step(connection, moment)
    assert lease_of(claimed).status == "running"
    own.spare()
    own.step(connection, now + 1.1)
    assert lease_of(claimed).status == "lost"


@pytest.mark.postgresql_only
def test_leases_are_spared_from_when_the_database_takes_writes_again() -> None:
    """A database that was read-only for longer than a lease has answered reads meanwhile."""
    wait_until(server_is_older_than_a_lease)
    own, now = duties(), time.monotonic()
    noop.enqueue()
    claimed = claim_one()
    run_out(claimed)

    def step_read_only() -> None:
        with atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL transaction_read_only = on")
            own.step(connection, now)

    own.spare()
    with pytest.raises(InternalError, match="read-only"):
        step_read_only()
    own.spare()
    for moment in (now + 1.5, now + 2.4):
        own.step(connection, moment)
        assert lease_of(claimed).status == "running"
    own.step(connection, now + 2.6)
    assert lease_of(claimed).status == "lost"


def test_alert_rules_cost_no_statement_while_none_is_enabled_or_due() -> None:
    own = duties()
    serve(own)
    with CaptureQueriesContext(connection) as without:
        serve(own)
    alerts.create("disks", kind="worker_trouble", mail=["ops@example.org"])
    serve(own)
    with CaptureQueriesContext(connection) as between:
        serve(own)
    alerts.edit("disks", enabled=False)
    with CaptureQueriesContext(connection) as disabled:
        serve(own)
    assert len(without) == len(between) == len(disabled)
    own_statements = [each["sql"] for each in without if "taskqueue_alertrule" in each["sql"]]
    assert len(own_statements) == 1  # The one that promotes.


def test_a_rule_that_is_due_is_judged_every_fifteen_seconds() -> None:
    own = duties(TAKEOVER_INTERVAL=3600)
    rule = alerts.create("disks", kind="worker_trouble", mail=["ops@example.org"])
    before = time.monotonic()
    serve(own)
    rule.refresh_from_db()
    assert rule.evaluated_at is not None
    serve(own)
    assert before + 14 <= own.next_at <= time.monotonic() + 15.1
