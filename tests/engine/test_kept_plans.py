"""Plans of the claim and the record that the server keeps, and what they read when all has changed.

A kept plan is made once, over tables that may be empty, and used for days.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection as default_connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.sessions import own_session
from taskqueue.engine.statement import change, fetch
from taskqueue.models import Task
from tests.conftest import require_tool
from tests.engine.steps import LEASE, another_connection, claim, outcome
from tests.engine.test_bad_statistics import FINISHED
from tests.engine.test_plans import BATCH, rows_read
from tests.monitoring.test_health import elsewhere
from tests.pooler import PROGRAM, Pooler
from tests.sample.tasks import noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

MANY = 20_000
# The fields of a session's prepared statements.
PREPARED = "SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements"
# After so many plans of its own for a statement, a session may keep one for all parameters.
TRIALS = 5
ANALYZE = "VACUUM (ANALYZE) taskqueue_task, taskqueue_lease"


@pytest.fixture
def worker() -> Iterator[BaseDatabaseWrapper]:
    """The session of a worker that listens."""
    with another_connection() as connection:
        own_session(connection)
        yield connection


def work(worker: BaseDatabaseWrapper, size: int) -> int:
    """Claim and record a batch in one transaction; how many rows that read."""
    with transaction(worker):
        before = rows_read(worker)
        outcomes = [outcome(each, OutcomeKind.SUCCEEDED) for each in claim(size, connection=worker)]
        if outcomes:
            record(worker, outcomes, policy=EndPolicy.of(get_settings()))
        return rows_read(worker) - before


def customs(worker: BaseDatabaseWrapper) -> list[int]:
    """How many plans for its own parameters alone each kept statement has had."""
    prepared = fetch(worker, PREPARED)
    assert prepared
    assert all(generic for _, generic, _ in prepared), prepared
    return [custom for *_, custom in prepared]


def warm_up(worker: BaseDatabaseWrapper) -> None:
    """Over tables that the server knows to be empty, but for a few tasks."""
    change(default_connection, ANALYZE)
    noop.enqueue_many([((), {})] * (TRIALS + 2))
    for _ in range(TRIALS + 2):
        work(worker, 1)
    assert customs(worker) == [TRIALS] * 3


def test_a_plan_kept_since_the_tables_were_empty_reads_by_keys_when_they_are_full(
    worker: BaseDatabaseWrapper,
) -> None:
    warm_up(worker)
    change(default_connection, FINISHED, (MANY,))
    noop.enqueue_many([((), {})] * MANY)
    noop.using(run_after=timezone.now() + timedelta(days=1)).enqueue_many([((), {})] * MANY)

    stale = [work(worker, BATCH) for _ in range(10)]
    change(default_connection, ANALYZE)
    fresh = [work(worker, BATCH) for _ in range(10)]

    # About five a task.
    assert max(stale + fresh) <= 10 * BATCH
    # The analysis had them planned anew, and still for all parameters.
    assert customs(worker) == [TRIALS] * 3


def test_a_plan_kept_since_the_tables_were_full_reads_by_keys_after_they_were_emptied(
    worker: BaseDatabaseWrapper,
) -> None:
    change(default_connection, FINISHED, (MANY,))
    noop.enqueue_many([((), {})] * MANY)
    change(default_connection, ANALYZE)
    counts = [work(worker, BATCH) for _ in range(TRIALS + 2)]
    assert customs(worker) == [TRIALS] * 3
    for table in ("lease", "task"):
        change(default_connection, f"DELETE FROM taskqueue_{table}")
    change(default_connection, ANALYZE)
    for _ in range(TRIALS):
        assert work(worker, BATCH) == 0
    change(default_connection, FINISHED, (MANY,))
    noop.enqueue_many([((), {})] * MANY)
    counts += [work(worker, BATCH) for _ in range(10)]

    assert max(counts) <= 10 * BATCH
    assert customs(worker) == [TRIALS] * 3


def test_the_first_claims_of_a_full_table_do_not_keep_the_server_from_keeping_a_plan(
    worker: BaseDatabaseWrapper,
) -> None:
    """The one plan for all is made when others that were made over empty tables cost nothing."""
    change(default_connection, ANALYZE)
    for _ in range(TRIALS):
        work(worker, BATCH)
    noop.enqueue_many([((), {})] * MANY)
    change(default_connection, ANALYZE)
    for _ in range(TRIALS + 2):
        work(worker, BATCH)

    assert customs(worker) == [TRIALS] * 3


def test_the_kept_statements_are_few_however_batches_differ(worker: BaseDatabaseWrapper) -> None:
    noop.enqueue_many([((), {})] * 400)

    def take(queues: int, size: int, unknown: list[str], *, has_floor: bool) -> None:
        names = ["default", *map(str, range(queues))]
        with transaction(worker):
            claimed = dialect_for(worker).claim(
                worker,
                worker="w1",
                quotas=[(name, size) for name in names],
                unknown=unknown,
                lease_duration=LEASE,
                floors={"default": timezone.now() - timedelta(days=1)} if has_floor else {},
            )
            outcomes = [
                outcome(each, OutcomeKind.SUCCEEDED, return_value=[None, "1"][number % 2])
                for number, each in enumerate(claimed[: size // 2 + 1])
            ]
            record(worker, outcomes, policy=EndPolicy.of(get_settings()))

    for size in (1, 2, 3, 50):
        for unknown in ([], ["a"], ["a", "b"]):
            for queues in (0, 1, 9):
                take(queues, size, unknown, has_floor=size > 1)

    prepared = [statement for statement, *_ in fetch(worker, PREPARED)]
    assert len(set(prepared)) == 3
    # The types of parameters differ: floors or none, returned values or none.
    assert len(prepared) <= 6


def test_nothing_is_kept_on_a_session_that_a_pooler_may_hand_to_others() -> None:
    require_tool(PROGRAM)
    noop.enqueue_many([((), {})] * 100)
    default_connection.close()
    with Pooler(default_connection.settings_dict, "transaction", size=1) as pooler:
        with elsewhere(pooler.port), another_connection() as worker:
            before = pooler.session_state()
            for _ in range(10):
                assert work(worker, 10)
        assert pooler.session_state() == before
    assert Task.objects.filter(status="succeeded").count() == 100
