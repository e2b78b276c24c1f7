"""Looking after tasks of several workers reads those that wait, however many others there are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from taskqueue.engine import broadcast, multi_worker
from taskqueue.engine.statement import change, fetch
from taskqueue.models import Task, Worker
from tests.engine.steps import policy
from tests.engine.test_apart import alive, row, take
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db(transaction=True)

FINISHED = 4000
INDEX = "taskqueue_task_apart"
OWN_KEY = ("(id=?)", "taskqueue_task_pkey")
"""In the plan of a look at tasks that were picked before."""


def release_gone() -> int:
    return broadcast.release_gone(connection, policy=policy())[0]


def end_overdue() -> int:
    return len(multi_worker.end_overdue(connection, policy=policy()))


@pytest.mark.parametrize(
    "is_analyzed",
    # PostgreSQL analyzes by itself, SQLite never does.
    [True, pytest.param(False, marks=pytest.mark.sqlite_only)],
    ids=["analyzed", "never_analyzed"],
)
@pytest.mark.parametrize("look", [release_gone, end_overdue])
def test_it_finds_them_by_their_own_index(look: Callable[[], int], is_analyzed: bool) -> None:
    noop.enqueue_many([((), {})] * FINISHED)
    Task.objects.update(status="succeeded", finished_at=timezone.now())
    wait_in_vain()
    if is_analyzed:
        change(connection, "ANALYZE")

    plans = plans_of(look)

    assert any(INDEX in plan for plan in plans), plans
    for plan in plans:
        assert INDEX in plan or any(key in plan for key in OWN_KEY), plan
        assert "Seq Scan on taskqueue_task" not in plan


def wait_in_vain() -> None:
    """A broadcast that waits for a worker that is gone, and a task that is overdue."""
    alive("a")
    alive("b")
    everywhere = add.using(broadcast=True).enqueue(1)
    twice = add.using(workers=2, deadline=3600).enqueue(1)
    take("a")
    assert {row(everywhere).status, row(twice).status} == {"running"}
    long_ago = timezone.now() - timedelta(minutes=2)
    Worker.objects.filter(name="b").update(seen_at=long_ago)
    Task.objects.filter(id=twice.id).update(deadline_at=long_ago)


def plans_of(look: Callable[[], int]) -> list[str]:
    """How the database reads tasks in all that this sends."""
    sent: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if "taskqueue_task" in sql and sql.lstrip().startswith(("SELECT", "WITH")):
            sent.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        assert look() == 1
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    return [
        "\n".join(str(line[-1]) for line in fetch(connection, f"{explain} {sql}", parameters))
        for sql, parameters in sent
    ]
