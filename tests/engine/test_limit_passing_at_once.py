"""Successes whose places pass on, recorded with all that they count by a single statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.engine.postgresql.passing import Passing
from taskqueue.engine.record import record_at_once
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import own_session
from taskqueue.engine.tally import Subject, Tally
from taskqueue.models import Lease, LimitNote, Rollup, Task
from taskqueue.worker.claims import Claims
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.limited_exchange import claim_by_rank
from taskqueue.worker.limits import SlotLimits
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.recording import Batch
from tests.engine.limit_steps import args, open_lanes
from tests.engine.steps import LEASE, another_connection, policy
from tests.engine.test_limit_passing import begin, places, running, two_a_key
from tests.sample.tasks import add, noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]


@pytest.fixture
def session() -> Iterator[BaseDatabaseWrapper]:
    """A session of a worker's own."""
    with another_connection() as connection:
        own_session(connection)
        yield connection


def subject_of(lease_id: int) -> Subject:
    task = Lease.objects.get(id=lease_id).task
    return Subject(str(task.id), task.queue_name, task.name, None, is_step=task.step_id is not None)


def ends(leases: dict[int, str]) -> list[Outcome]:
    return [Outcome(id, OutcomeKind.SUCCEEDED, ended=0.0, started=0.1) for id in leases]


def pass_at_once(
    session: BaseDatabaseWrapper, leases: dict[int, str]
) -> tuple[dict[int, Recorded] | None, Passing]:
    passing = Passing(
        leases=leases, worker="w1", served=["default"], unknown=(), lease_duration=LEASE, most=100
    )
    recorded = record_at_once(
        session, ends(leases), passing.record_at_once, policy=policy(), tally=Tally(subject_of)
    )
    return recorded, passing


def test_all_is_recorded_counted_and_passed_on(session: BaseDatabaseWrapper) -> None:
    ended = begin(4)
    recorded, passing = pass_at_once(session, ended)
    assert recorded is not None
    assert recorded.keys() == ended.keys()
    assert passing.passed is not None
    assert args(passing.passed.claimed) == ["[1, 2]", "[1, 3]"]
    assert places() == running() == set(passing.passed.passing)
    counted = Rollup.objects.get()
    assert (counted.succeeded, counted.tasks_succeeded) == (2, 2)
    assert not LimitNote.objects.exists()


def test_nothing_is_done_where_one_of_them_has_ended_or_is_to_stop(
    session: BaseDatabaseWrapper,
) -> None:
    ended = begin(4)
    first, second = ended
    for change in (
        {"finished_at": timezone.now(), "status": "lost"},
        {"stop_seen_at": timezone.now()},
    ):
        Lease.objects.filter(id=first).update(**change)
        recorded, passing = pass_at_once(session, ended)
        assert (recorded, passing.passed) == (None, None)
        assert Lease.objects.get(id=second).finished_at is None
        assert not Rollup.objects.exists()
        Lease.objects.filter(id=first).update(finished_at=None, status="running", stop_seen_at=None)


def test_tasks_of_workflows_and_those_that_failed_are_recorded_otherwise(
    session: BaseDatabaseWrapper,
) -> None:
    ended = begin(2)
    passing = Passing(
        leases=ended, worker="w1", served=["default"], unknown=(), lease_duration=LEASE, most=100
    )
    failed = [outcome._replace(kind=OutcomeKind.FAILED) for outcome in ends(ended)]
    for outcomes, tally in (
        (failed, Tally(subject_of)),
        (ends(ended), Tally(lambda id: subject_of(id)._replace(is_step=True))),
        (ends(ended), Tally()),
    ):
        assert not record_at_once(
            session, outcomes, passing.record_at_once, policy=policy(), tally=tally
        )
    Task.objects.update(step_id=7)
    assert pass_at_once(session, ended)[0] is None
    assert running() == set(ended)


class PlayedRequests:
    """The requests of a worker that claims under limits, with the statements that each took."""

    def __init__(self, session: BaseDatabaseWrapper) -> None:
        self._session = session
        self.limits = SlotLimits(QueueQuotas.parse("default"), {})
        self._claims = Claims(
            QueueQuotas.parse("default"), worker_name="w1", slots=4, lease_duration=LEASE
        )
        self._claims.limited.see(open_lanes())
        self._held: list[Claimed] = []
        self.statements: list[str] = []

    def next(self) -> list[str]:
        """Record what the last one claimed, and claim; the arguments of the tasks."""
        room = self.limits.room([])
        outcomes = ends({row.lease_id: "" for row in self._held})
        exchange = Exchange(outcomes=outcomes, want=4, free=4, room=room)
        self._claims.begin(room, slots=4)
        self.statements = []
        with self._session.execute_wrapper(self._note):
            batch = Batch(policy(), Tally(subject_of))
            claim_by_rank(self._session, self._claims, exchange, batch)
        self._held = exchange.claimed
        return args(exchange.claimed)

    def _note(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.statements.append(sql)
        return execute(sql, params, many, context)


def test_a_worker_records_and_claims_in_one_statement_while_nothing_else_waits(
    session: BaseDatabaseWrapper,
) -> None:
    two_a_key.enqueue_many([((1, number), {}) for number in range(9)])
    worker = PlayedRequests(session)
    assert worker.next() == ["[1, 0]", "[1, 1]"]
    assert worker.next() == ["[1, 2]", "[1, 3]"]
    assert len(worker.statements) > 1, "It does not know yet that nothing else waits."
    assert worker.next() == ["[1, 4]", "[1, 5]"]
    assert len(worker.statements) == 1
    two_a_key.enqueue(2, 0)
    assert sorted(worker.next()) == ["[1, 6]", "[1, 7]", "[2, 0]"]
    assert len(worker.statements) > 1
    assert worker.next() == ["[1, 8]"]
    assert worker.next() == []
    assert (places(), running()) == (set(), set())
    assert Task.objects.filter(status="succeeded").count() == 10
    assert sum(Rollup.objects.values_list("tasks_succeeded", flat=True)) == 10


def test_places_pass_on_beside_definitions_that_are_left_to_other_workers(
    session: BaseDatabaseWrapper,
) -> None:
    two_a_key.enqueue_many([((1, number), {}) for number in range(8)])
    worker = PlayedRequests(session)
    worker.limits.excluded = frozenset([noop.name])
    worker.next()
    worker.next()
    assert worker.next() == ["[1, 4]", "[1, 5]"]
    assert len(worker.statements) == 1
    worker.limits.excluded = frozenset([add.name])
    assert worker.next() == []
    assert (places(), running()) == (set(), set())
