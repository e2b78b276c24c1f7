"""The reads of a step of an operation, however large the table and however rare what fits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection as default_connection
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.operations import serving, walking
from taskqueue.engine.operations.asking import start_operation
from taskqueue.engine.operations.walking import estimate
from taskqueue.models import Task
from tests.engine.operation_steps import fill, serve_all, statuses
from tests.engine.steps import another_connection, claim, end
from tests.engine.test_plans import rows_read
from tests.monitoring.many import copy
from tests.sample.tasks import noop

MANY = 2500


def succeed(count: int) -> None:
    """So many tasks that are of no interest."""
    now = timezone.now()
    row = Task.objects.create(
        name=noop.name, status="succeeded", finished_at=now, crash_delay=timedelta(seconds=1)
    )
    copy(row, count - 1)


@pytest.mark.slow
@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("verb", "which"),
    [
        ("retry", TaskFilter(name="shop.tasks.gone")),
        ("retry", TaskFilter(statuses=["failed"])),
        ("cancel", TaskFilter(everything=True)),
        ("stop", TaskFilter(queue_name="default")),
        ("duplicate", TaskFilter(worker="nobody")),
    ],
)
def test_a_step_reads_a_window_of_a_large_table(
    monkeypatch: pytest.MonkeyPatch, verb: str, which: TaskFilter
) -> None:
    monkeypatch.setattr(walking, "WINDOW", 100)
    succeed(MANY)
    fill(3, run_after=timedelta(hours=1))
    fill(3)
    for claimed in claim(2):
        end(claimed, OutcomeKind.FAILED)
    with default_connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) taskqueue_task, taskqueue_lease")
    operation = start_operation(verb, which)
    counts = []
    with another_connection() as worker:
        for _ in range(MANY):
            with orm_transaction(worker):
                before = rows_read(worker)
                has_done = serving.step(worker)
                counts.append(rows_read(worker) - before)
            if not has_done:
                break
    operation.refresh_from_db()
    assert operation.status == "finished"
    assert max(counts) <= 6 * 100


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("verb", "status", "count", "after"),
    [
        ("stop", "running", 4, "running"),
        ("cancel", "ready", 6, "cancelled"),
        ("run_now", "scheduled", 3, "ready"),
        ("retry", "failed", 5, "ready"),
    ],
)
def test_the_few_of_a_status_are_found_among_many(
    monkeypatch: pytest.MonkeyPatch, verb: str, status: str, count: int, after: str
) -> None:
    """Each by the index of its status, those that name their workers among them."""
    monkeypatch.setattr(walking, "WINDOW", 10)
    fill(5)
    for claimed in claim(5):
        end(claimed, OutcomeKind.FAILED)
    fill(4)
    claim(4)
    fill(5)
    noop.using(worker_names=["w1"]).enqueue()
    fill(3, run_after=timedelta(hours=1))
    succeed(50)
    before = statuses()
    assert before[status] == count
    if status == "failed" or default_connection.vendor == "postgresql":
        found = estimate(verb, TaskFilter(statuses=[status]))
        assert (found.doable, found.is_capped) == (count, False)
    operation = start_operation(verb, TaskFilter(statuses=[status]))
    serve_all()
    operation.refresh_from_db()
    assert (operation.status, operation.done) == ("finished", count)
    assert statuses().get(after, 0) == before.get(after, 0) + (0 if after == status else count)
