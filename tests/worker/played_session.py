"""The session of a worker whose database thread the test plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from taskqueue.conf import get_settings
from taskqueue.engine.tally import Tally
from taskqueue.worker.meter import Meter
from taskqueue.worker.quotas import QueueQuotas
from taskqueue.worker.state import WorkerOptions, WorkerState
from taskqueue.worker.worker_session import WorkerSession
from tests.engine.test_workers import registered
from tests.worker.played import EVERY_QUEUE


def new_session(
    heard: Callable[[str], None] | None = None, *, queues: QueueQuotas = EVERY_QUEUE
) -> WorkerSession:
    """The session of a worker that is registered, not open yet."""
    _, found = registered("w1")
    options = WorkerOptions(name="w1", queues=queues)
    state = WorkerState(options, get_settings(), Meter(), lambda: None)
    state.registered = found
    return WorkerSession(state, heard=heard, tally=Tally())


@contextmanager
def played_session(queues: QueueQuotas = EVERY_QUEUE) -> Iterator[WorkerSession]:
    """An open session."""
    session = new_session(queues=queues)
    session.open()
    try:
        yield session
    finally:
        session.end()
