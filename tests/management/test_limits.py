"""Debounce, throttle, capacity and `unique_per` on the command line."""

from __future__ import annotations

import re

import pytest

from taskqueue.models import Task
from tests.management.test_taskqueue import refused, run, run_json
from tests.sample.rest_tasks import crawl, index_doc, remind
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db


def test_declared_limits_hold_and_the_answer_says_what_became_of_the_call() -> None:
    run("enqueue", crawl.name, "--args", '["eu"]')
    code, said = refused("enqueue", crawl.name, "--args", '["eu"]')
    assert (code, "is reached: 1 unfinished task with this key" in said) == (1, True)

    first = run_json("enqueue", remind.name, "--args", '["ada"]')
    second = run_json("enqueue", remind.name, "--args", '["ada"]')
    assert (second["id"], second["created"], second["updated"]) == (first["id"], False, False)

    first = run_json("enqueue", index_doc.name, "--args", '[1, "a"]')
    second = run_json("enqueue", index_doc.name, "--args", '[1, "b"]')
    assert (second["id"], second["created"], second["updated"]) == (first["id"], False, True)
    assert "It is debounced: it runs at" in run("why", first["id"])


def test_limits_can_be_given_as_json() -> None:
    one = ["enqueue", noop.name, "--set", 'capacity={"number": 1, "when_full": "drop"}']
    assert run_json(*one)["created"]
    assert not run_json(*one)["created"]
    late = ["--set", 'debounce={"wait": "5m", "key": "a", "max_wait": "1h"}']
    run("enqueue", add.name, "--args", "[1]", *late)
    task = Task.objects.get(name=add.name)
    assert (task.run_after - task.enqueued_at).total_seconds() == 300
    hourly = ["enqueue", add.name, "--args", "[2]", "--unique-key", "k"]
    assert run_json(*hourly, "--set", "unique_per=day")["created"]
    assert not run_json(*hourly, "--set", "unique_per=day")["created"]
    assert run_json(*hourly, "--set", "unique_per=90m")["created"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ('capacity={"most": 1}', "Capacity has no 'most'"),
        ("capacity={}", "'number' is missing"),
        ("capacity=5", r"such as Capacity\(10"),
        ('throttle={"rate": "1/y"}', "must be a rate such as"),
        ('debounce={"wait": "soon"}', "is not a duration"),
        ("unique_per=year", "'minute', 'hour', 'day', 'week'"),
    ],
)
def test_an_invalid_limit_is_reported(given: str, reason: str) -> None:
    _, said = refused("enqueue", noop.name, "--set", given)
    assert re.search(reason, said), said
    assert not Task.objects.exists()
