"""A worker's statements read the rows they touch, however its tables have grown meanwhile."""

from __future__ import annotations

import pytest
from django.db import connection as default_connection
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.statement import fetch
from taskqueue.engine.wedged import mark_wedged
from taskqueue.models import Lease
from tests.engine.steps import another_connection, claim, claim_one, lease_of, outcome, past
from tests.sample.tasks import noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

BATCH = 50
LARGE = 10_000
# What this session has not yet handed to the statistics of all: it does so between transactions.
ROWS_READ = """
SELECT COALESCE(sum(idx_tup_fetch + seq_tup_read), 0)
FROM pg_stat_xact_user_tables
WHERE relname IN ('taskqueue_task', 'taskqueue_lease')
"""


def work(worker: BaseDatabaseWrapper, size: int) -> int:
    """Claim and record a batch in one transaction; how many rows that read."""
    with transaction(worker):
        before = rows_read(worker)
        outcomes = [outcome(each, OutcomeKind.SUCCEEDED) for each in claim(size, connection=worker)]
        assert len(outcomes) == size
        assert len(record(worker, outcomes, policy=EndPolicy.of(get_settings()))) == size
        return rows_read(worker) - before


def rows_read(worker: BaseDatabaseWrapper) -> int:
    """A count to take differences of, within one transaction."""
    return int(fetch(worker, ROWS_READ)[0][0])


def test_plans_made_over_empty_tables_do_not_outlive_them() -> None:
    """The server keeps a prepared plan after some uses, whatever becomes of the table."""
    with default_connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) taskqueue_task, taskqueue_lease")
    with another_connection() as worker:
        noop.enqueue_many([((), {})] * 12)
        for _ in range(12):
            work(worker, 1)
        noop.enqueue_many([((), {})] * (LARGE + 10 * BATCH))
        for _ in range(10):
            work(worker, LARGE // 10)
        counts = [work(worker, BATCH) for _ in range(10)]
    # About five a task. A kept plan reads the whole table, as a good one does while it is small:
    # below some 4,000 rows, by what the server knows of the widths of rows.
    assert max(counts) <= 10 * BATCH


def test_looking_for_wedged_attempts_reads_a_sample_however_many_there_were() -> None:
    noop.enqueue_many([((), {})] * 40 * BATCH)
    with another_connection() as worker:
        for _ in range(40):
            work(worker, BATCH)
        noop.enqueue()
        claimed = claim_one()
        Lease.objects.filter(id=claimed.lease_id).update(started_at=past())
        with transaction(worker):
            before = rows_read(worker)
            assert mark_wedged(worker, sample=BATCH) == 1
            assert rows_read(worker) - before <= 4 * BATCH
    assert lease_of(claimed).wedged_at is not None
