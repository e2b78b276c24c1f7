"""Long backlogs of definitions that a worker leaves out do not make its claims slow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue.control import pause_definition, resume_definition
from taskqueue.engine import backlogs as statements
from taskqueue.engine.connections import transaction
from taskqueue.models import Task
from taskqueue.worker import backlogs as backlogs_module
from taskqueue.worker.claims import Claims
from taskqueue.worker.limits import Room
from taskqueue.worker.quotas import QueueQuotas
from tests.engine.steps import LEASE, past
from tests.sample.tasks import add, echo, noop

pytestmark = pytest.mark.django_db


class Clock:
    """Stands still unless it is told otherwise."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """All claims count as slow."""
    clock = Clock()
    monkeypatch.setattr(backlogs_module, "time", clock)
    monkeypatch.setattr(backlogs_module, "SLOW_CLAIM", -1.0)
    return clock


@pytest.fixture
def claims() -> Claims:
    return Claims(QueueQuotas.parse("default"), worker_name="w1", slots=1, lease_duration=LEASE)


def take(claims: Claims, want: int, room: Room | None = None) -> list[str]:
    """The arguments of the tasks that a claim gives."""
    claims.begin(room or Room({}, {}), slots=want)
    with transaction(connection):
        return [row.args for row in claims.claim(connection, want, [])]


def test_others_are_claimed_in_order_behind_a_backlog_that_is_left_out(
    claims: Claims, clock: Clock
) -> None:
    noop.enqueue_many([((), {})] * 20)
    for number, priority in enumerate((0, 5, 0, -5)):
        echo.using(priority=priority).enqueue(number)
    noop.using(priority=9).enqueue_many([((), {})] * 20)
    pause_definition(noop.name)
    assert take(claims, 1) == ["[1]"]
    assert take(claims, 2) == ["[0]", "[2]"]
    echo.using(priority=50).enqueue("urgent")
    echo.enqueue("later")
    assert take(claims, 9) == ['["urgent"]', '["later"]', "[3]"]
    assert take(claims, 9) == []
    echo.enqueue("last")
    assert take(claims, 9) == ['["last"]']


def test_a_resumed_definition_is_claimed_at_once(claims: Claims, clock: Clock) -> None:
    noop.enqueue_many([((), {})] * 3)
    echo.enqueue_many([((1,), {}), ((2,), {})])
    pause_definition(noop.name)
    assert take(claims, 1) == ["[1]"]
    assert take(claims, 1) == ["[2]"]
    resume_definition(noop.name)
    assert take(claims, 9) == ["[]"] * 3


def test_a_definition_that_has_room_again_is_claimed_at_once(claims: Claims, clock: Clock) -> None:
    noop.enqueue_many([((), {})] * 3)
    echo.enqueue_many([((1,), {}), ((2,), {}), ((3,), {})])
    for number in (1, 2):
        assert take(claims, 1, Room({}, {noop.name: 0})) == [f"[{number}]"]
    assert take(claims, 2, Room({}, {noop.name: 1})) == ["[]", "[3]"]


def test_a_task_ready_before_the_known_beginning_is_claimed_after_the_next_lookup(
    claims: Claims, clock: Clock
) -> None:
    noop.enqueue_many([((), {})] * 3)
    echo.enqueue_many([((number,), {}) for number in range(5)])
    pause_definition(noop.name)
    assert take(claims, 1) == ["[0]"]
    assert take(claims, 1) == ["[1]"]
    Task.objects.filter(id=echo.enqueue("older").id).update(run_after=past())
    assert take(claims, 1) == ["[2]"]
    clock.now += backlogs_module.SHORTEST
    assert take(claims, 1) == ['["older"]']


def test_a_claim_that_something_else_made_slow_is_looked_into_once(
    claims: Claims, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looks() -> int:
        clock.now += backlogs_module.SHORTEST
        with CaptureQueriesContext(connection) as queries:
            take(claims, 1)
        return sum("SELECT name\n    FROM taskqueue_pause" in query["sql"] for query in queries)

    echo.enqueue_many([((number,), {}) for number in range(4)])
    assert looks() == 0
    monkeypatch.setattr(backlogs_module, "SLOW_CLAIM", 60.0)
    assert [looks(), looks(), looks()] == [1, 0, 0]


def test_a_task_enqueued_during_a_lookup_is_not_left_out() -> None:
    noop.enqueue()
    begins = statements.beginnings(connection, "default", [noop.name])
    later = Task.objects.get(id=add.enqueue(1, 2).id)
    assert later.run_after - begins[0] < timedelta(seconds=60)
    # Two seconds at least; SQLite rounds to milliseconds.
    assert later.run_after - begins[0] > timedelta(seconds=1.999)
    assert statements.beginnings(connection, "default", []) == {
        0: Task.objects.earliest("run_after").run_after
    }
