"""A ping that compares the worker's row with what the worker knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from taskqueue.conf import get_settings
from taskqueue.engine import workers
from taskqueue.engine.notify import ANYWHERE
from taskqueue.worker.heartbeat import Heartbeat
from taskqueue.worker.meter import Meter
from taskqueue.worker.state import WorkerOptions, WorkerState
from tests.engine.test_workers import registered
from tests.worker.played import EVERY_QUEUE

pytestmark = pytest.mark.django_db


@pytest.fixture
def state() -> WorkerState:
    registration, answer = registered("w1")
    options = WorkerOptions(name="w1", queues=EVERY_QUEUE)
    state = WorkerState(options, get_settings(), Meter(), lambda: None)
    state.registration, state.registered = registration, answer
    return state


def ping(state: WorkerState) -> None:
    pool: Any = SimpleNamespace(process_ids=list, trouble="", children=[])
    leases: Any = SimpleNamespace(held={})
    heartbeat = Heartbeat(state, pool, leases)
    heartbeat._connection = connection
    heartbeat.step(0.0, [])


def test_a_ping_lets_a_worker_look_again_that_others_had_marked(state: WorkerState) -> None:
    state.is_idle = True
    ping(state)
    assert (state.is_idle, list(state.heard)) == (False, [ANYWHERE])


def test_a_worker_that_becomes_idle_during_a_ping_stays_so(
    state: WorkerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch = workers.touch

    def touch_before(*args: Any, **sign: Any) -> workers.Asked | None:
        asked = touch(*args, **sign)
        state.is_idle = True  # The database thread has just written it.
        return asked

    monkeypatch.setattr(workers, "touch", touch_before)
    ping(state)
    assert (state.is_idle, list(state.heard)) == (True, [])
