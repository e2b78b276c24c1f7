"""Waiting tasks follow the limits that newer code declares; running ones that of their queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.definition import registry
from taskqueue.declarations.limits import Concurrency, Fair, Rate, Sequence
from taskqueue.engine.connections import transaction
from taskqueue.engine.limits.declaring import sync_limits
from taskqueue.engine.limits.sweeping import Sweep
from taskqueue.models import LimitPlan, Partition, Slot, Task
from taskqueue.models.task import Route
from tests.engine.limit_steps import repairs, take
from tests.engine.steps import another_connection, claim, end
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def declaring(**options: Any) -> Iterator[Any]:
    """The code declares the task with these limits, and a worker starts with it."""
    before = registry._definitions[add.name]
    changed = add.using(**options) if options else add
    registry._definitions[add.name] = changed
    try:
        sync_limits()
        yield changed
    finally:
        registry._definitions[add.name] = before


NEW = [
    {"fair": Fair("a")},
    {"sequence": Sequence("a")},
    {"requires": {"gpu"}},
    {"concurrency": Concurrency(1)},
    {"rate": Rate("1/h")},
]


@pytest.mark.parametrize("options", NEW, ids=lambda options: next(iter(options)))
def test_waiting_tasks_come_under_newly_declared_limits(options: dict[str, Any]) -> None:
    add.enqueue_many([((1,), {})] * 3)
    with declaring(**options):
        assert claim() == []
        assert len(take(tags={"gpu"})) == (
            1 if options.keys() & {"sequence", "concurrency", "rate"} else 3
        )


@pytest.mark.parametrize("options", NEW, ids=lambda options: next(iter(options)))
def test_waiting_tasks_are_free_of_limits_no_longer_declared(options: dict[str, Any]) -> None:
    with declaring(**options) as limited:
        limited.enqueue_many([((1,), {})] * 3)
    with declaring():
        assert len(claim()) == 3
        assert take(tags={"gpu"}) == []
        assert not LimitPlan.objects.filter(name=add.name).exists()
        assert repairs() == 0


def test_waiting_tasks_take_the_changed_key_weight_and_on_failure() -> None:
    before = {"sequence": Sequence("a"), "fair": Fair("a")}
    after = {"sequence": Sequence("a", on_failure="halt"), "fair": Fair("b", weight=3)}
    with declaring(**before) as limited:
        limited.enqueue(1, 2)
    with declaring(**after):
        [task] = Task.objects.all()
        assert task.limits["tenant"] == {"key": "2", "weight": 3.0}
        assert task.limits["sequence"]["halts"] is True
        assert len(take()) == 1


def test_limits_of_a_call_stay_as_they_are() -> None:
    with declaring(concurrency=Concurrency(2, name="own")) as limited:
        limited.using(concurrency=Concurrency(1, name="of_call")).enqueue(1)
    with declaring(concurrency=Concurrency(2, name="other")):
        [task] = Task.objects.all()
        assert [each["name"] for each in task.limits["limits"]] == ["of_call"]


def test_a_worker_whose_code_says_the_same_places_nothing() -> None:
    with declaring(concurrency=Concurrency(2, name="own")):
        pass
    add.enqueue(1)
    with declaring(concurrency=Concurrency(3, name="own")):
        assert len(claim()) == 1


def test_a_task_for_named_workers_stays_theirs_with_other_arguments() -> None:
    of_key = {"unique_key": "k", "on_duplicate": "replace"}
    named = add.using(worker_names=("w9",), **of_key).enqueue(1)
    with declaring(concurrency=Concurrency(1)) as limited:
        for change, args in (
            (lambda: named.update(args=[2]), [2]),
            (lambda: limited.using(**of_key).enqueue(3), [3]),
        ):
            change()
            task = Task.objects.get()
            assert (task.args, task.route, task.limits) == (args, Route.APART, None)
            assert take() == []


def test_a_task_that_moves_leaves_its_partition_as_if_it_had_ended() -> None:
    with declaring(concurrency=Concurrency(1, name="own")) as limited:
        limited.enqueue_many([((1,), {})] * 3)
        [running] = take()
    with declaring(concurrency=Concurrency(1, name="other")):
        assert len(take()) == 1, "What runs takes a place of the limit that it was claimed under."
        end(running, OutcomeKind.SUCCEEDED)
        assert take() == []
        states = {row.limits["limits"][0]["name"]: row.state for row in Partition.objects.all()}
        assert states == {"own": "empty", "other": "waiting"}
        assert repairs() == 0


@pytest.mark.postgresql_only
def test_a_claim_that_was_under_way_when_its_queue_was_limited_gets_its_places() -> None:
    add.enqueue_many([((1,), {})] * 3)
    with another_connection() as worker:
        with transaction(worker):
            [running] = claim(1, connection=worker)
            control.limit_queue("default", concurrency=1)
        Sweep().step(connections["default"])
        assert take() == []
        assert Slot.objects.count() == 1
        end(running, OutcomeKind.SUCCEEDED)
        assert len(take()) == 1
        assert Slot.objects.count() == 1
