"""A queue whose tasks are all limited gets a row, like others, when a worker claims from it."""

from __future__ import annotations

import pytest
from django.test.utils import CaptureQueriesContext

from taskqueue import Concurrency
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.models import Queue
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.worker_session import WorkerSession
from tests.engine.steps import outcome
from tests.sample.tasks import noop
from tests.worker.played_session import played_session

pytestmark = pytest.mark.django_db(transaction=True)
INSERT = "INSERT INTO taskqueue_queue"


def enqueue(queue_name: str) -> None:
    noop.using(queue_name=queue_name, concurrency=Concurrency(2, name="two")).enqueue()


def claim(session: WorkerSession, outcomes: list[Outcome] | None = None) -> Exchange:
    exchange = Exchange(want=1, free=1, outcomes=outcomes or [])
    session.carry_out(exchange)
    return exchange


def names() -> set[str]:
    return set(Queue.objects.values_list("name", flat=True))


def test_a_queue_with_limited_tasks_alone_is_remembered_once() -> None:
    enqueue("mail")
    enqueue("mail")
    with played_session() as session:
        assert [row.queue_name for row in claim(session).claimed] == ["mail"]
        assert names() == {"mail"}
        with CaptureQueriesContext(session.connection) as queries:
            assert len(claim(session).claimed) == 1
    assert not [query["sql"] for query in queries if INSERT in query["sql"]]


def test_a_queue_is_remembered_that_was_claimed_from_while_an_end_was_recorded() -> None:
    enqueue("mail")
    enqueue("post")
    with played_session() as session:
        [first] = claim(session).claimed
        ended = outcome(first, OutcomeKind.SUCCEEDED)
        [second] = claim(session, [ended]).claimed
    assert {first.queue_name, second.queue_name} == names() == {"mail", "post"}
