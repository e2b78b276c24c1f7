"""Changes without a subscription cost no row and no statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.events.numbering import HAS_NEW_EVENTS
from taskqueue.engine.sessions import WANTED_EVENTS
from taskqueue.engine.statement import text_of
from tests.engine.steps import claim, claim_one, end
from tests.events.steps import listen, written
from tests.sample.tasks import noop
from tests.worker.test_duties import duties, serve

pytestmark = pytest.mark.django_db(transaction=True)
TABLES = ("taskqueue_event", "taskqueue_subscription", "taskqueue_audience")


def test_nothing_is_written_while_nobody_has_subscribed() -> None:
    noop.enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    assert written() == []


STEPS: list[Callable[[], Any]] = [
    lambda: noop.enqueue(),
    lambda: noop.enqueue_many([((), {})] * 3),
    lambda: [end(claimed, OutcomeKind.SUCCEEDED) for claimed in claim()],
]


def test_events_cost_no_statement() -> None:
    def statements() -> list[int]:
        counts = []
        for step in STEPS:
            with CaptureQueriesContext(connection) as queries:
                step()
            counts.append(len(queries))
        return counts

    statements()
    before = statements()
    listen("task.failed")
    assert statements() == before
    listen()
    assert statements() == before


def test_duties_run_no_statement_for_events_that_nobody_wants() -> None:
    noop.enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    assert statements_of_duties() == []
    listen("task.enqueued")
    noop.enqueue()
    assert statements_of_duties() != []


def statements_of_duties() -> list[str]:
    """The statements of some turns of a worker's duties that are about events alone.

    All duties share one look, and each transaction has settings that tell what anybody wants.
    """
    own, shared = duties(), (text_of(connection, HAS_NEW_EVENTS), WANTED_EVENTS)
    with CaptureQueriesContext(connection) as queries:
        for _ in range(3):
            serve(own)
    found = [each["sql"] for each in queries if any(table in each["sql"] for table in TABLES)]
    assert found
    return [each for each in found if not any(part in each for part in shared)]
