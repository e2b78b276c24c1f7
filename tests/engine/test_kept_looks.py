"""The statement that promotes and looks for the duties: the server keeps its plan."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection as default_connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from taskqueue import Every, schedules
from taskqueue.engine.connections import transaction
from taskqueue.engine.forecast import HAS_READY, NEXT_DUE, Forecast, promote
from taskqueue.engine.pruning import NEXT_TASK
from taskqueue.engine.schedules.ends import HAS_ENDED_RUNS
from taskqueue.engine.sessions import own_session
from taskqueue.engine.statement import Statement, change, fetch
from taskqueue.models import Occurrence, Task
from taskqueue.worker.duties import LOOKS
from taskqueue.worker.periodic_duties import PeriodicDuties
from tests.engine.steps import another_connection
from tests.engine.test_bad_statistics import FINISHED
from tests.engine.test_kept_plans import MANY, PREPARED, TRIALS
from tests.sample.tasks import noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

PERIODIC = tuple(PeriodicDuties(1.0).looks)
ALL = LOOKS + PERIODIC
# The same as in `test_plans`, for all tables.
ROWS_READ = """
SELECT COALESCE(sum(idx_tup_fetch + seq_tup_read), 0)::bigint FROM pg_stat_xact_user_tables
WHERE starts_with(relname, 'taskqueue_')
"""
TABLES = [
    table
    for table in default_connection.introspection.django_table_names()
    if table.startswith("taskqueue_")
]
RUNS = 50


@pytest.fixture
def worker() -> Iterator[BaseDatabaseWrapper]:
    """The session of a worker that listens."""
    with another_connection() as connection:
        own_session(connection)
        yield connection


def look(worker: BaseDatabaseWrapper, left_out: tuple[Statement, ...] = ()) -> Forecast:
    """Look as the first worker does."""
    return promote(worker, ALL, left_out=left_out, worker_id=0, limit=100)


def rows_read(worker: BaseDatabaseWrapper) -> int:
    """How many rows a look of everything reads."""
    with transaction(worker):
        before = int(fetch(worker, ROWS_READ)[0][0])
        look(worker)
        return int(fetch(worker, ROWS_READ)[0][0]) - before


def test_the_server_keeps_one_plan_whichever_looks_are_left_out(
    worker: BaseDatabaseWrapper,
) -> None:
    change(default_connection, FINISHED, (10,))
    noop.enqueue()
    noop.using(run_after=timezone.now() + timedelta(days=1)).enqueue()
    for number in range(2 * TRIALS):
        forecast = look(worker, PERIODIC[number:])
        assert forecast.has_ready
        assert (forecast.until(NEXT_TASK) is None) == (NEXT_TASK in PERIODIC[number:])
    assert [(generic, custom) for _, generic, custom in fetch(worker, PREPARED)] == [
        (TRIALS, TRIALS)
    ]


def test_a_shared_session_sees_the_same_and_keeps_nothing(worker: BaseDatabaseWrapper) -> None:
    noop.using(run_after=timezone.now() + timedelta(days=1)).enqueue()
    noop.enqueue()
    with another_connection() as shared:
        for left_out in ((), PERIODIC):
            ours, theirs = look(worker, left_out), look(shared, left_out)
            assert ours.holds(HAS_READY)
            assert theirs.holds(HAS_READY)
            assert theirs.until(NEXT_DUE) == pytest.approx(ours.until(NEXT_DUE), abs=60)
        assert fetch(shared, PREPARED) == []


def fill() -> None:
    """Many tasks of each kind, and some runs of a schedule that have not ended."""
    change(default_connection, FINISHED, (MANY,))
    noop.enqueue_many([((), {})] * MANY)
    noop.using(run_after=timezone.now() + timedelta(days=1)).enqueue_many([((), {})] * MANY)
    schedule = schedules.create("hourly", noop, Every(hours=1))
    ready = Task.objects.filter(status="ready").values_list("id", flat=True)[:RUNS]
    Occurrence.objects.bulk_create(
        Occurrence(
            schedule_id=schedule.id, nominal_at=timezone.now() + timedelta(minutes=number),
            status="enqueued", task_id=task_id,
        )
        for number, task_id in enumerate(ready)
    )  # fmt: skip


@pytest.mark.parametrize("over", ["empty", "full", "emptied", "truncated"])
def test_a_plan_kept_since_the_tables_were_otherwise_reads_few_rows(
    over: str, worker: BaseDatabaseWrapper
) -> None:
    with default_connection.cursor() as cursor:
        if over != "empty":
            fill()
        cursor.execute(f"VACUUM (ANALYZE) {', '.join(TABLES)}")
        if over == "truncated":
            cursor.execute("TRUNCATE taskqueue_task, taskqueue_lease, taskqueue_schedule CASCADE")
        elif over == "emptied":
            for table in ("occurrence", "schedule", "lease", "task"):
                cursor.execute(f"DELETE FROM taskqueue_{table}")
            cursor.execute("VACUUM taskqueue_task")
    for _ in range(TRIALS + 2):
        look(worker)
    if over != "full":
        fill()
    assert not look(worker).holds(HAS_ENDED_RUNS)
    # An occurrence and its task for each run; one or two rows for each other look.
    assert rows_read(worker) <= 2 * RUNS + 2 * len(ALL)
    (kept,) = fetch(worker, PREPARED)
    assert kept[2] == TRIALS
