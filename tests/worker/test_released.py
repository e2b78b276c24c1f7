"""How a worker claims what its own advance of a workflow has released."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test.utils import CaptureQueriesContext

from taskqueue import chain
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.worker.apart_claims import APART_INTERVAL
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.worker_session import WorkerSession
from taskqueue.worker.workflows import StepEnds
from tests.engine.steps import outcome
from tests.sample.tasks import add, noop
from tests.worker.played import NOW, PlayedWorker
from tests.worker.played_session import played_session
from tests.worker.test_claims import Clock, clock

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["clock"]
# Of the looks for queues that have tasks.
LOOK = "WITH RECURSIVE lane"


@pytest.fixture
def session(clock: Clock) -> Iterator[WorkerSession]:
    """The session of a worker, whose claims take no time."""
    with played_session() as session:
        yield session


def request(session: WorkerSession, exchange: Exchange) -> list[str]:
    """Carry out a request as the database thread does; the names of the tasks claimed."""
    session.carry_out(exchange)
    session.advance(StepEnds(), exchange)
    session.claim_released(exchange)
    return [row.name for row in exchange.claimed]


def ended(exchange: Exchange) -> list[Outcome]:
    """Successes of all that an exchange has claimed."""
    return [
        outcome(row, OutcomeKind.SUCCEEDED, return_value="1", started=0.1)
        for row in exchange.claimed
    ]


def test_the_next_step_is_claimed_without_a_look_for_queues_soon_after_the_last_look(
    session: WorkerSession, clock: Clock
) -> None:
    chain(add.s(1, 1), add.s(1), add.s(1)).enqueue()
    first = Exchange(want=2)
    assert request(session, first) == [add.name]
    with CaptureQueriesContext(session.connection) as statements:
        second = Exchange(outcomes=ended(first), want=2, has_looked=True)
        assert request(session, second) == [add.name]
    assert not [each for each in statements.captured_queries if LOOK in each["sql"]]

    # What nobody announced waits no longer than this.
    noop.using(queue_name="other").enqueue()
    clock.now += APART_INTERVAL
    third = Exchange(outcomes=ended(second), want=2, has_looked=True)
    assert sorted(request(session, third)) == sorted([add.name, noop.name])


def test_where_an_end_releases_nothing_a_worker_looks_everywhere(session: WorkerSession) -> None:
    add.s(1, 1).enqueue()
    first = Exchange(want=2)
    request(session, first)
    noop.using(queue_name="other").enqueue()
    second = Exchange(outcomes=ended(first), want=2, has_looked=True)
    assert request(session, second) == [noop.name]


def test_who_has_not_looked_claims_in_the_transaction_that_records(session: WorkerSession) -> None:
    chain(add.s(1, 1), add.s(1)).enqueue()
    first = Exchange(want=1)
    request(session, first)
    noop.enqueue()
    second = Exchange(outcomes=ended(first), want=2)
    session.carry_out(second)
    assert [row.name for row in second.claimed] == [noop.name]


def test_a_worker_has_looked_if_nothing_was_left_behind_or_announced_since() -> None:
    worker = PlayedWorker(QueueQuotas(), slots=2)
    first = worker.next_request()
    assert first is not None
    assert not first.has_looked
    worker.answer()
    worker.rest()
    worker.pending.outcomes.append(Outcome(1, OutcomeKind.SUCCEEDED, NOW))
    second = worker.next_request()
    assert second is not None
    assert second.has_looked
    worker.answer()
    worker.rest()
    worker.pending.outcomes.append(Outcome(2, OutcomeKind.SUCCEEDED, NOW))
    worker.timetable.hear({"mail"}, NOW)
    third = worker.next_request()
    assert third is not None
    assert not third.has_looked
