"""A worker with nothing to do: how often it asks the database, by a clock that the test plays."""

from __future__ import annotations

import time

import pytest

from taskqueue.conf import get_settings
from taskqueue.control import pause
from taskqueue.engine.tally import Tally
from taskqueue.models import Task
from taskqueue.worker.duties import Duties
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.worker_session import WorkerSession
from tests.sample.tasks import noop
from tests.worker.played import NOW, PlayedWorker
from tests.worker.played_session import played_session

pytestmark = pytest.mark.django_db(transaction=True)
# Seconds of the played clock.
WATCHED = 30


def live(worker: PlayedWorker, session: WorkerSession) -> list[Exchange]:
    """Carry out all that a worker asks in this time; return its requests."""
    duties = Duties(get_settings(), worker_id=0, tally=Tally())
    now, sent = NOW, list[Exchange]()
    while now < NOW + WATCHED:
        request = worker.next_request(now)
        if request is None:
            now = max(worker.coordinator.next_at(now), now + 0.001)
            continue
        session.carry_out(request)
        if request.with_duties:
            request.has_ready = duties.step(session.connection, now)
            request.duties_at = now + max(0.0, duties.next_at - time.monotonic())
        worker.thread.answer_as_carried_out()
        worker.coordinator.take_in(now)
        sent.append(request)
        assert len(sent) <= 10 * WATCHED, "It does not rest."
    return sent


@pytest.mark.parametrize("queues", ["", "default", "default,mail"])
def test_a_worker_with_nothing_but_paused_tasks_looks_once_a_second_at_most(queues: str) -> None:
    pause("default")
    noop.enqueue_many([((), {})] * 300)
    quotas = QueueQuotas.parse(queues)

    with played_session(quotas) as session:
        sent = live(PlayedWorker(quotas), session)

    assert len([each for each in sent if each.with_duties]) <= WATCHED
    assert len([each for each in sent if each.want]) <= 2
    assert not any(each.claimed for each in sent)
    assert set(Task.objects.values_list("status", flat=True)) == {"ready"}
