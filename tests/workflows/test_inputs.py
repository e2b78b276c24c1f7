"""A worker reads small results for the tasks that it claims, so that their processes need not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from taskqueue import chain, chord
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed
from taskqueue.engine.workflows import inputs, rounds
from taskqueue.engine.workflows.inputs import FEWER, SMALL, with_inputs
from taskqueue.engine.workflows.results import arguments_of
from tests.engine.steps import claim, outcome, policy
from tests.sample.tasks import add, echo

pytestmark = pytest.mark.django_db(transaction=True)


def succeed(claimed: list[Claimed], value: Any) -> None:
    """Record a success with that result for each, and move their workflows on."""
    text = json.dumps(value)
    outcomes = [outcome(task, OutcomeKind.SUCCEEDED, return_value=text) for task in claimed]
    with transaction(connection):
        recorded = record(connection, outcomes, policy=policy())
    rounds.fold_and_advance(connection, {row.step_id for row in recorded.values() if row.step_id})


def batches_of(claimed: list[Claimed]) -> list[list[Claimed]]:
    """Return the claimed tasks, those with the same first argument together."""
    by_first = {json.loads(row.args)[0]: list[Claimed]() for row in claimed}
    for row in claimed:
        by_first[json.loads(row.args)[0]].append(row)
    return list(by_first.values())


def given(row: Claimed) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments that the body of a claimed task gets."""
    alias = connection.alias
    return arguments_of(alias, task_id=row.task_id, args=row.args, kwargs=row.kwargs)


@pytest.mark.parametrize(
    "value", [None, 3, "text", [1, [2]], {"$step": "load", "$$a": {"$argument": 0}}]
)
def test_a_claimed_task_is_given_the_result_of_the_step_before(
    value: Any, django_assert_num_queries: Any
) -> None:
    chain(add.s(1, 2), echo.s()).enqueue()
    succeed(claim(1), value)
    (claimed,) = claim(1)
    expected = given(claimed)
    (filled,) = with_inputs(connection, [claimed])
    assert filled != claimed
    with django_assert_num_queries(0):
        assert given(filled) == expected == ([value], {})


def test_tasks_of_several_workflows_are_given_their_own_results_by_one_statement(
    django_assert_num_queries: Any,
) -> None:
    for number in range(3):
        chord([add.s(number, n) for n in range(4)], echo.s()).enqueue()
    for members in batches_of(claim(12)):
        succeed(members, json.loads(members[0].args)[0])
    callbacks = claim(3)
    with django_assert_num_queries(1):
        filled = with_inputs(connection, callbacks)
    with django_assert_num_queries(0):
        results = [given(row)[0][0] for row in filled]
    assert sorted(results) == [[0] * 4, [1] * 4, [2] * 4]


@pytest.mark.parametrize("value", [list(range(SMALL)), "compressible " * SMALL])
def test_large_results_stay_references(value: Any) -> None:
    chain(add.s(1, 2), echo.s()).enqueue()
    succeed(claim(1), value)
    (large,) = claim(1)
    assert with_inputs(connection, [large]) == [large]
    assert given(large) == ([value], {})


def test_wide_lists_stay_references() -> None:
    width = FEWER + 1
    chord([add.s(n, n) for n in range(width)], echo.s()).enqueue()
    succeed(claim(width), 1)
    (wide,) = claim(1)
    assert with_inputs(connection, [wide]) == [wide]
    assert given(wide) == ([[1] * width], {})


def test_one_statement_reads_a_bounded_number_of_steps(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    for _ in range(3):
        chain(add.s(1, 2), echo.s()).enqueue()
    succeed(claim(3), 3)
    claimed = claim(3)
    monkeypatch.setattr(inputs, "MOST_STEPS", 2)
    with django_assert_num_queries(2):
        filled = with_inputs(connection, claimed)
    assert [json.loads(row.args) for row in filled] == [[3]] * 3


def test_a_task_that_reads_very_many_steps_reads_them_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chord([add.s(1, 2), add.s(3, 4)], echo.s()).enqueue()
    succeed(claim(2), 3)
    claimed = claim(1)
    monkeypatch.setattr(inputs, "MOST_STEPS", 0)
    assert with_inputs(connection, claimed) == claimed


def test_arguments_of_ordinary_tasks_are_left_alone() -> None:
    echo.using(timeout=5).enqueue({"$step": "add"})
    (claimed,) = claim(1)
    assert with_inputs(connection, [claimed]) == [claimed]


def test_a_reference_that_a_result_lacks_is_left_for_the_body() -> None:
    chain(add.s(1, 2), echo.s()).enqueue()
    succeed(claim(1), {"rows": 1})
    (claimed,) = claim(1)
    reference = {"$step": "add", "path": ["missing"]}
    claimed = claimed._replace(args=json.dumps([reference]))
    assert with_inputs(connection, [claimed]) == [claimed]
    broken = claimed._replace(args=json.dumps([{"$step": 1}]))
    assert with_inputs(connection, [broken]) == [broken]
