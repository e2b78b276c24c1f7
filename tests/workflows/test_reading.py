"""A handle and a body read many steps by few queries, however many there are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue import group, task, workflow
from taskqueue.engine.workflows import members
from taskqueue.engine.workflows.results import arguments_of
from taskqueue.models import Task
from taskqueue.results.workflows import WorkflowRun, get_workflow
from taskqueue.workflows import Builder
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish

pytestmark = pytest.mark.django_db(transaction=True)
FEW, MANY = 4, 30


@task
def collect(results: list[Any]) -> int:
    return len(results)


@task
def fails_alike(number: int) -> None:
    raise ValueError(f"no {number}")


@workflow(name="tests.leaves")
def leaves(wf: Builder, width: int) -> None:
    for number in range(width):
        wf.step(add.s(number, 1), name=f"leaf{number}")


@workflow(name="tests.failures")
def failures(wf: Builder, width: int) -> None:
    for number in range(width):
        wf.step(fails_alike.s(number), name=f"fails{number}")
    wf.step(fail.map(["no"]), name="map")


def queries_of(read: Any) -> int:
    with CaptureQueriesContext(connection) as queries:
        read()
    return len(queries)


def fresh(run: WorkflowRun) -> WorkflowRun:
    return get_workflow(run.id)


def test_the_results_of_many_last_steps_are_read_at_once() -> None:
    counts = []
    for width in (FEW, MANY):
        run = fresh(finish(leaves.enqueue(width)))
        counts.append(queries_of(lambda run=run: run.return_value))
        assert run.return_value == {f"leaf{n}": n + 1 for n in range(width)}
    assert counts[0] == counts[1]


def test_results_that_are_too_large_together_are_read_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members, "LARGEST_LIST", 3)
    run = finish(leaves.enqueue(FEW))
    assert run.return_value == {f"leaf{n}": n + 1 for n in range(FEW)}


def test_the_errors_of_many_steps_are_read_at_once() -> None:
    counts = []
    for width in (FEW, MANY):
        run = fresh(finish(failures.enqueue(width)))
        counts.append(queries_of(lambda run=run: run.errors))
        assert list(run.errors) == [*(f"fails{n}" for n in range(width)), "map"]
        assert run.errors["fails2"]["message"] == "no 2"
        assert run.errors["map"]["place"] == 0
    assert counts[0] == counts[1]


def test_a_body_reads_the_results_of_unlike_calls_at_once() -> None:
    counts = []
    for width in (FEW, MANY):
        unlike = group([add.s(1, 1) if n % 2 else echo.s(n) for n in range(width)])
        run = finish((unlike | collect.s()).enqueue())
        row = Task.objects.get(step__workflow=run.id, name=collect.name)
        given: list[Any] = []

        def read(row: Task = row, given: list[Any] = given) -> None:
            args = json.dumps(row.args)
            given += arguments_of("default", task_id=str(row.id), args=args, kwargs="{}")

        counts.append(queries_of(read))
        assert given[0] == [[2 if n % 2 else [[n], {}] for n in range(width)]]
    assert counts[0] == counts[1]
