"""Limits of tasks that are steps of workflows."""

from __future__ import annotations

import pytest

from taskqueue import Concurrency, InvalidTask, Rate, group
from taskqueue.models import Slot, Task
from taskqueue.models.task import Route
from taskqueue.testing import run_due
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)

limited = add.using(concurrency=Concurrency(1, key="a"))


def test_members_of_a_map_and_single_steps_are_limited() -> None:
    run = (group(limited.s(number, 1) for number in range(3)) | limited.si(7, 1)).enqueue()
    run_due()
    run.refresh()
    assert run.status == "succeeded"
    assert set(Task.objects.values_list("route", flat=True)) == {Route.PARTITION}
    assert Task.objects.values("partition").distinct().count() == 4
    assert not Slot.objects.exists()


def test_a_key_that_is_the_result_of_a_step_is_refused() -> None:
    with pytest.raises(InvalidTask, match="not known before another step has ended"):
        (add.s(1, 1) | limited.s(1)).enqueue()
    assert not Task.objects.exists()


def test_a_key_that_a_callable_makes_is_refused() -> None:
    by_call = add.using(rate=Rate("5/s", key=lambda a, b=1: str(a)))
    with pytest.raises(InvalidTask, match="Name an argument instead"):
        (by_call.s(1, 1) | add.si(1)).enqueue()
    assert not Task.objects.exists()
