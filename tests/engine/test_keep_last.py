"""Of a definition with `keep_last`, the finished tasks beyond that number are pruned."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.transaction import atomic
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from taskqueue import group, task
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import surplus
from taskqueue.engine.dialect import select
from taskqueue.engine.pruning import prunable, prune_tasks
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult
from tests.engine.steps import claim, end, past
from tests.sample.tasks import echo, noop

pytestmark = pytest.mark.django_db


@task(name="tests.kept.two", keep_last=2)
def two() -> None:
    """Keep the last two of its tasks."""


@task(name="tests.kept.none", keep_last=0)
def none() -> None:
    """Keep no finished task."""


def finish(kind: OutcomeKind = OutcomeKind.SUCCEEDED) -> None:
    """Let all that waits end, each a little later than the one before."""
    for claimed in claim(100):
        end(claimed, kind)


def ended_before(results: list[TaskResult[Any]]) -> None:
    """Let them have ended some seconds apart, the last one now."""
    for place, result in enumerate(reversed(results)):
        Task.objects.filter(id=result.id).update(finished_at=past(timedelta(seconds=place)))


def kept() -> list[Any]:
    return list(Task.objects.order_by("id").values_list("id", flat=True))


def test_the_first_that_ended_beyond_the_number_go_with_their_attempts() -> None:
    results = two.enqueue_many([((), {})] * 5)
    finish()
    ended_before(list(results))
    assert prunable(connection)["tasks"] == 3
    assert prune_tasks(connection) == 3
    assert kept() == [result.id for result in results[3:]]
    assert Lease.objects.count() == 2
    assert prunable(connection)["tasks"] == 0
    assert prune_tasks(connection) == 0


@pytest.mark.parametrize("kind", [OutcomeKind.FAILED, OutcomeKind.CANCELLED])
def test_every_end_counts(kind: OutcomeKind) -> None:
    two.enqueue_many([((), {})] * 3)
    finish(kind)
    assert prune_tasks(connection) == 1


def test_none_is_kept_with_a_number_of_zero() -> None:
    none.enqueue()
    finish()
    assert prune_tasks(connection) == 1


def test_unfinished_tasks_are_neither_counted_nor_pruned() -> None:
    two.enqueue_many([((), {})] * 4)
    claim(2)
    assert prune_tasks(connection) == 0
    assert Task.objects.count() == 4


def test_other_definitions_keep_theirs() -> None:
    noop.enqueue_many([((), {})] * 3)
    none.enqueue()
    two.enqueue_many([((), {})] * 3)
    finish()
    assert prune_tasks(connection) == 2
    names = list(Task.objects.values_list("name", flat=True))
    assert sorted(names) == sorted([noop.name] * 3 + [two.name] * 2)


def test_a_holder_of_a_key_stays_until_the_key_is_free() -> None:
    result = none.using(unique_key="k", unique_for=60).enqueue()
    finish()
    assert prune_tasks(connection) == 0
    Task.objects.filter(id=result.id).update(unique_until=past(), prune_after=past())
    assert prune_tasks(connection) == 1


def test_a_key_that_is_kept_excludes_it() -> None:
    with pytest.raises(InvalidTask, match="keep_last and unique_for='kept' exclude each other"):
        none.using(unique_key="k", unique_for="kept").enqueue()


def test_the_number_of_the_newest_code_holds_for_all() -> None:
    results = two.enqueue_many([((), {})] * 4)
    finish()
    ended_before(list(results))
    Task.objects.filter(id=results[-1].id).update(keep_last=3)
    assert prune_tasks(connection) == 1


def test_tasks_of_a_workflow_go_with_it() -> None:
    (two.si() | group(two.si() for _ in range(60))).enqueue()
    group(two.s() for _ in range(3)).enqueue()
    assert Task.objects.filter(name=two.name).exists()
    assert not Task.objects.exclude(keep_last=None).exists()


def test_many_that_are_copied_have_it() -> None:
    two.enqueue_many([((), {})] * 200)
    assert Task.objects.filter(keep_last=2).count() == 200


def test_defaults_give_it_to_many() -> None:
    with override_settings(TASKQUEUE={"DEFAULTS": {"tests.given.*": {"keep_last": 1}}}):

        @task(name="tests.given.one")
        def one() -> None:
            """Keep the last one."""

        one.enqueue_many([((), {})] * 3)
        one.enqueue()
        finish()
        assert prune_tasks(connection) == 3


def test_a_turn_marks_no_more_than_its_limit() -> None:
    none.enqueue_many([((), {})] * 5)
    two.enqueue_many([((), {})] * 5)
    finish()
    assert [surplus.mark_surplus(connection, limit=4) for _ in range(4)] == [4, 4, 0, 0]


def test_without_such_definitions_it_costs_one_look() -> None:
    noop.enqueue()
    finish()
    with CaptureQueriesContext(connection) as queries:
        assert surplus.mark_surplus(connection, limit=10) == 0
    assert len(queries) == 1


@pytest.mark.postgresql_only
@pytest.mark.parametrize("statement", [surplus.NAMES, surplus.MARK], ids=["names", "mark"])
def test_it_reads_by_the_index_of_such_tasks(statement: Any) -> None:
    """Few of many finished tasks are of such a definition."""
    echo.enqueue_many([((number,), {}) for number in range(3000)])
    two.enqueue_many([((), {})] * 30)
    now = {"status": "succeeded", "finished_at": past(timedelta(0))}
    Task.objects.update(**now)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE taskqueue_task")
        cursor.execute(
            f"EXPLAIN (FORMAT JSON) {statement.postgresql}",
            {"name": two.name, "keep_last": 2, "limit": 500},
        )
        plan = cursor.fetchone()[0]
    text = plan if isinstance(plan, str) else json.dumps(plan)
    assert "taskqueue_task_kept" in text
    assert "Seq Scan" not in text


def test_a_task_that_was_marked_and_runs_again_is_not_pruned() -> None:
    result = none.enqueue()
    finish()
    assert surplus.mark_surplus(connection, limit=10) == 1
    with atomic():
        result.retry()
    assert prune_tasks(connection) == 0
    assert select(connection, surplus.NAMES) == []
