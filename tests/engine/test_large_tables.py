"""A worker's statements read the rows that they are for in tables of any size.

With TASKQUEUE_FULL=1 there are a million ready tasks, a million scheduled and ten million finished
ones, else a hundredth of that. Autovacuum comes when it wants.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection as default_connection
from django.utils import timezone

from taskqueue.engine.sessions import own_session
from taskqueue.engine.statement import change
from tests.engine.steps import another_connection
from tests.engine.test_bad_statistics import FINISHED, TABLES, assert_frugal, running
from tests.engine.test_kept_plans import customs, warm_up, work
from tests.engine.test_plans import BATCH
from tests.sample.tasks import noop
from tests.sharing_out import IS_FULL

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

UNIT = 1_000_000 if IS_FULL else 10_000
STEP = 250_000


def fill() -> None:
    """As many ready as scheduled tasks, and ten times as many finished ones."""
    for start in range(0, 10 * UNIT, STEP):
        change(default_connection, FINISHED, (min(STEP, 10 * UNIT - start),))
    later = noop.using(run_after=timezone.now() + timedelta(days=1))
    for definition in (noop, later):
        for start in range(0, UNIT, STEP):
            definition.enqueue_many([((), {})] * min(STEP, UNIT - start))


def test_statements_are_frugal_with_statistics_of_empty_tables_and_with_fresh_ones() -> None:
    with another_connection() as worker:
        own_session(worker)
        warm_up(worker)
        fill()
        assert_frugal(running(1000))
        counts = [work(worker, BATCH) for _ in range(5)]
        change(default_connection, f"VACUUM (ANALYZE) {TABLES}")
        assert_frugal(running(1000))
        counts += [work(worker, BATCH) for _ in range(5)]
        kept = customs(worker)

    assert max(counts) <= 10 * BATCH
    assert len(set(kept)) == 1, "The server keeps the plans of all three statements."
