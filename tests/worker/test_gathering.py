"""Outcomes that wait for others before they are recorded: no look at each child's answer."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.worker.recorder import LINGER
from tests.worker.played import NOW, PlayedWorker

ENDED = Outcome(1, OutcomeKind.SUCCEEDED, NOW)


@pytest.fixture
def worker() -> PlayedWorker:
    """A worker whose two bodies run."""
    worker = PlayedWorker(slots=0).rest()
    worker.dispatcher.held = worker.dispatcher.pool.held = 2
    return worker


def test_a_first_outcome_waits_for_others_until_a_request_records_it(worker: PlayedWorker) -> None:
    assert not worker.coordinator.is_gathering
    worker.pending.outcomes.append(ENDED)
    assert worker.coordinator.is_gathering
    assert worker.next_request() is None
    assert worker.next_request(NOW + LINGER) is not None
    assert not worker.coordinator.is_gathering


def test_nothing_gathers_while_a_request_is_under_way_or_the_database_is_away(
    worker: PlayedWorker,
) -> None:
    worker.pending.outcomes.append(ENDED)
    request = worker.next_request(NOW + LINGER)
    assert request is not None
    worker.pending.outcomes.append(ENDED._replace(lease_id=2))
    assert not worker.coordinator.is_gathering
    worker.thread.fail(OperationalError("away"))
    worker.coordinator.take_in(NOW + LINGER)
    assert worker.coordinator.outage.is_on
    assert not worker.coordinator.is_gathering
