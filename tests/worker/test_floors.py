"""A worker whose claims are slow leaves out the dead rows at the head of its queues."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import connection as default_connection
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.rows import NO_FLOORS
from taskqueue.engine.sessions import own_session
from taskqueue.engine.statement import change
from taskqueue.models import Task
from taskqueue.worker import floors as floors_module
from taskqueue.worker.claims import Claims
from taskqueue.worker.quotas import QueueQuotas
from tests.engine.steps import LEASE, another_connection, past
from tests.sample.tasks import echo

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

SKIPS_PAGES = 180000
"""The version of PostgreSQL that passes pages of an index by a condition on its third column."""


class Clock:
    """Stands still unless it is told otherwise."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(floors_module, "time", clock)
    return clock


@pytest.fixture
def worker() -> Iterator[BaseDatabaseWrapper]:
    with another_connection() as worker:
        own_session(worker)
        yield worker


@pytest.fixture
def claims() -> Claims:
    return Claims(QueueQuotas(), worker_name="w1", slots=1, lease_duration=LEASE)


def take(claims: Claims, worker: BaseDatabaseWrapper, want: int) -> list[str]:
    """The arguments of the tasks that a claim gives."""
    with transaction(worker):
        return [each.args for each in claims.claim(worker, want, [])]


def numbered(first: int, last: int) -> list[str]:
    return [f"[{number}]" for number in range(first, last + 1)]


@pytest.fixture
def older(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a task that becomes ready below the floor, while all claims count as slow."""
    monkeypatch.setattr(floors_module, "SLOW_CLAIM", -1.0)
    echo.enqueue_many([((number,), {}) for number in range(1, 11)])

    def make() -> None:
        Task.objects.filter(id=echo.enqueue("older").id).update(run_after=past())

    return make


def test_a_task_ready_below_the_floor_is_claimed_once_the_floor_is_found_again(
    claims: Claims, worker: BaseDatabaseWrapper, clock: Clock, older: Any
) -> None:
    assert take(claims, worker, 2) == numbered(1, 2)
    assert take(claims, worker, 2) == numbered(3, 4)
    older()
    assert take(claims, worker, 2) == numbered(5, 6)

    clock.now += floors_module.SHORTEST_FLOOR

    assert take(claims, worker, 2) == ['["older"]', "[7]"]


def test_a_task_ready_below_the_floor_is_claimed_if_the_queue_is_short(
    claims: Claims, worker: BaseDatabaseWrapper, older: Any
) -> None:
    assert take(claims, worker, 2) == numbered(1, 2)
    assert take(claims, worker, 2) == numbered(3, 4)
    older()

    assert sorted(take(claims, worker, 20)) == sorted([*numbered(5, 10), '["older"]'])


def test_fast_claims_have_no_floors(
    claims: Claims, worker: BaseDatabaseWrapper, older: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floors_module, "SLOW_CLAIM", 3600.0)
    assert take(claims, worker, 2) == numbered(1, 2)
    assert take(claims, worker, 2) == numbered(3, 4)
    older()

    assert take(claims, worker, 2) == ['["older"]', "[5]"]


def test_the_floor_of_a_queue_is_its_earliest_task_of_any_priority(
    worker: BaseDatabaseWrapper,
) -> None:
    for queue_name in ("a", "b"):
        for priority in (9, 5, -5):
            echo.using(queue_name=queue_name, priority=priority).enqueue(priority)
    earliest = Task.objects.filter(queue_name="a", priority=-5)
    earliest.update(run_after=past())

    found = dialect_for(worker).earliest_ready(worker, ["a", "b", "c"])

    assert found["a"] == earliest.get().run_after
    assert found["b"] == Task.objects.get(queue_name="b", priority=9).run_after
    assert found.keys() == {"a", "b"}


def test_a_floor_passes_the_pages_of_dead_rows(worker: BaseDatabaseWrapper) -> None:
    session: Any = worker.connection
    if session.info.server_version < SKIPS_PAGES:
        pytest.skip("PostgreSQL skips pages from version 18 on")
    change(default_connection, "ALTER TABLE taskqueue_task SET (autovacuum_enabled = off)")
    echo.enqueue_many([((0,), {})] * 10_000)
    Task.objects.update(status="succeeded", finished_at=past())
    echo.enqueue_many([((1,), {})] * 10)

    first, second = (pages_read(worker, each) for each in (None, floor(worker)))

    assert second < first / 5
    change(default_connection, "ALTER TABLE taskqueue_task RESET (autovacuum_enabled)")


def floor(worker: BaseDatabaseWrapper) -> datetime:
    return dialect_for(worker).earliest_ready(worker, ["default"])["default"]


def pages_read(worker: BaseDatabaseWrapper, floor: datetime | None) -> int:
    """How many pages the claim of one task reads."""
    plans: list[dict[str, Any]] = []

    def explain(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", parameters, many, context)
        plans.append(context["cursor"].cursor.fetchone()[0][0]["Plan"])
        return execute(sql, parameters, many, context)

    with worker.execute_wrapper(explain):
        dialect_for(worker).claim(
            worker,
            worker="w1",
            quotas=[("default", 1)],
            unknown=[],
            lease_duration=LEASE,
            floors={"default": floor} if floor else NO_FLOORS,
        )
    (plan,) = plans
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
