"""Conditions: data that a worker evaluates without the project's code."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue import InvalidWorkflow
from taskqueue.declarations.workflows.conditions import check_condition, evaluate, targets_of
from taskqueue.declarations.workflows.reference_data import Target
from taskqueue.declarations.workflows.references import Condition, StepHandle

Read = Callable[[Target], Any]


def reading(**results: Any) -> Read:
    """Return a reader of these results, by the names of steps."""
    return lambda target: results[target.steps[0]]


def holds(condition: Condition, **results: Any) -> bool:
    """Evaluate a condition as a worker does: from its JSON."""
    data = json.loads(json.dumps(condition.data))
    check_condition(data)
    return evaluate(data, reading(**results))


STEP = StepHandle(None, "step")
X, Y = StepHandle(None, "x"), StepHandle(None, "y")


@pytest.mark.parametrize(
    ("condition", "result", "expected"),
    [
        (STEP["rows"] > 0, {"rows": 1}, True),
        (STEP["rows"] > 0, {"rows": 0}, False),
        (STEP == {"a": [1]}, {"a": [1]}, True),
        (STEP != "x", "y", True),
        (STEP <= "b", "a", True),
        (STEP.is_in(["a", None]), None, True),
        (STEP.is_in(["a"]), "b", False),
        (STEP["kinds"].contains("a"), {"kinds": ["a"]}, True),
        (STEP.contains("b"), "abc", True),
        (STEP.contains("key"), {"key": 1}, True),
        (STEP.is_null(), None, True),
        (STEP.is_null(), 0, False),
        (STEP["a"].is_null(), None, True),
        (STEP.length() == 2, [0, 0], True),
        (STEP.length() > 0, "", False),
        (STEP.length() > 0, None, False),
        (~STEP.is_null(), 1, True),
        ((STEP > 1) & (STEP < 3), 2, True),
        ((STEP > 1) | STEP.is_null(), None, True),
        (STEP & STEP["a"], {"a": 0}, False),
        (STEP == {"$step": "step"}, {"$step": "step"}, True),
    ],
)
def test_conditions_hold_or_do_not(condition: Condition, result: Any, expected: bool) -> None:
    assert holds(condition, step=result) is expected


@pytest.mark.parametrize("comparison", [STEP > 0, STEP >= 0, STEP < 0, STEP <= 0])
def test_null_is_neither_smaller_nor_larger(comparison: Condition) -> None:
    assert not holds(comparison, step=None)


@pytest.mark.parametrize(
    ("condition", "result", "reason"),
    [
        (STEP > 0, "text", "cannot compare text > a number"),
        (STEP < [1], {}, "cannot compare an object < a list"),
        (STEP.is_in(["a"]) & (STEP > 1), "a", "cannot compare text > a number"),
        (STEP["rows"] > 0, {}, "does not exist"),
        (STEP.contains("a"), 5, "cannot compare text in a number"),
    ],
)
def test_values_that_cannot_be_compared_are_reported(
    condition: Condition, result: Any, reason: str
) -> None:
    with pytest.raises(InvalidWorkflow, match=reason):
        holds(condition, step=result)


def test_large_values_compare_by_length_and_null_only() -> None:
    large = list(range(2000))
    for condition in (STEP == [1], STEP != 1, STEP.contains(3), STEP.is_in([1])):
        with pytest.raises(InvalidWorkflow, match="by its length, and with null"):
            holds(condition, step=large)
    assert holds(STEP.length() == 2000, step=large)
    assert not holds(STEP.is_null(), step=large)
    assert holds(STEP & ~(STEP[3] == 4), step=large)
    assert holds(STEP == "x" * 4000, step="x" * 4000)


def test_both_sides_may_be_results() -> None:
    assert holds(X["n"] > Y["n"], x={"n": 2}, y={"n": 1})
    assert holds(X == Y, x=[1], y=[1])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "has an `op`"),
        ({"op": ">"}, "has an `op`"),
        ({"op": ">", "of": [1, 2], "more": 1}, "has an `op`"),
        ({"op": "=>", "of": [1, 2]}, r"no comparison '=>'"),
        ({"op": ["<"], "of": [1, 2]}, "no comparison"),
        ({"op": ">", "of": [1]}, "takes 2 operands"),
        ({"op": "and", "of": []}, "takes a list of operands"),
        ({"op": "not", "of": [1]}, "has an `op`"),
        ({"op": "is_null", "of": [{"$step": 1}]}, "A reference"),
        ({"op": "==", "of": ["x" * 5000, 1]}, "more than 4,096 bytes"),
    ],
)
def test_data_that_is_no_condition_is_refused(data: Any, reason: str) -> None:
    with pytest.raises(InvalidWorkflow, match=reason):
        check_condition(data)


def test_conditions_that_are_nested_without_end_are_refused() -> None:
    data: Any = {"op": "is_null", "of": [{"$step": "a"}]}
    for _ in range(40):
        data = {"op": "not", "of": [data]}
    with pytest.raises(InvalidWorkflow, match="at most 32 levels"):
        check_condition(data)


numbers = st.integers(-3, 3)
comparisons = st.builds(
    lambda name, left, right: (getattr(operator, name), left, right),
    st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]),
    st.sampled_from([X, Y]),
    numbers | st.sampled_from([X, Y]),
)
Formula = Any
formulas = st.recursive(
    comparisons,
    lambda inner: (
        st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner)
    ),
    max_leaves=8,
)


def as_condition(formula: Formula) -> Condition:
    """Return a random formula as a condition."""
    match formula:
        case ("and", left, right):
            return as_condition(left) & as_condition(right)
        case ("or", left, right):
            return as_condition(left) | as_condition(right)
        case ("not", inner):
            return ~as_condition(inner)
    compare, left, right = formula
    made: Condition = compare(left, right)
    return made


def as_python(formula: Formula, x: int, y: int) -> bool:
    """Evaluate the same formula by Python's own operators."""
    match formula:
        case ("and", left, right):
            return as_python(left, x, y) and as_python(right, x, y)
        case ("or", left, right):
            return as_python(left, x, y) or as_python(right, x, y)
        case ("not", inner):
            return not as_python(inner, x, y)
    compare, left, right = formula
    values = [x if each is X else y if each is Y else each for each in (left, right)]
    return bool(compare(*values))


@given(formulas, numbers, numbers)
def test_conditions_mean_what_python_means(formula: Formula, x: int, y: int) -> None:
    condition = as_condition(formula)
    assert holds(condition, x=x, y=y) is as_python(formula, x, y)
    assert {target.steps[0] for target in targets_of(condition.data)} <= {"x", "y"}
