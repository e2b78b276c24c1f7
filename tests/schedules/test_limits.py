"""Runs of a schedule whose task is debounced, throttled or has a capacity."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import Capacity, Debounce, Throttle
from taskqueue.declarations.definition import registry
from taskqueue.definitions import task
from taskqueue.models import Task
from tests.schedules.steps import at, make, reasons, serve

pytestmark = pytest.mark.django_db


def body() -> None:
    """Of the tests."""


@pytest.mark.parametrize(
    "options",
    [
        {"throttle": Throttle("1/10d")},
        {"capacity": Capacity(1)},
        {"capacity": Capacity(1, when_full="replace")},
        {"debounce": Debounce(3600)},
    ],
    ids=lambda options: str(next(iter(options.values()))),
)
def test_a_run_that_is_not_let_in_is_skipped_and_names_the_task(options: dict[str, Any]) -> None:
    definition = task(name="tests.limited", **options)(body)
    try:
        holder = definition.enqueue()
        make(task=definition, overlap="allow")
        serve(at(1))
        assert reasons() == {1: f"Its unique key is held by task {holder.id}."}
        assert Task.objects.get().id == holder.id
        Task.objects.update(holds_unique_key=False)
        serve(at(2))
        assert Task.objects.exclude(id=holder.id).get().status == "ready", "It is not put off."
    finally:
        del registry._definitions["tests.limited"]


def test_the_runs_of_one_day_are_one_task_where_the_key_is_for_a_day() -> None:
    make(options={"unique_key": "k", "unique_per": "day"}, overlap="allow")
    serve(at(1))
    serve(at(2))
    (held,) = Task.objects.all()
    assert reasons() == {2: f"Its unique key is held by task {held.id}."}
