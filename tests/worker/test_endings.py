"""Attempts whose bodies raise: retried or not, and when."""

from __future__ import annotations

import math
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from taskqueue import Fixed, GiveUp, Linear, RetryLater, Snooze, task
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.retries import seconds_of
from taskqueue.definitions import Definition
from taskqueue.engine.tally import Tally
from taskqueue.worker.bodies.execution import Attempt
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.bodies.verdicts import verdict_on


def _body() -> None: ...


def _backoff(exception: BaseException, task_result: Any) -> Any:
    answer = exception.args[0]
    if answer == "raise":
        raise KeyError
    if answer == "exit":
        raise SystemExit
    return answer


asking: Definition[Any, Any] = task(name="tests.asking", backoff=_backoff)(_body)


def verdict(
    error: BaseException, definition: Any = None, failures: int = 0, **snapshot: Any
) -> Any:
    order = Order(1, "the-id", "n", 1, "[]", "{}", "", "", failures, 9, None, "q", None)
    attempt = Attempt(order, cast(Any, SimpleNamespace(task_result="the result")), Tally())
    attempt.definition, attempt.snapshot, attempt.started_at = definition, snapshot, 1.0
    return verdict_on(error, attempt)


@pytest.mark.parametrize("answer", [0, 5, 5.0, timedelta(seconds=5)])
def test_a_callable_decides_on_the_delay(answer: Any) -> None:
    assert verdict(ValueError(answer), asking).delay == seconds_of(answer)


@pytest.mark.parametrize("answer", ["raise", "exit", -1, math.nan, math.inf, 10**400, "5", None])
def test_a_callable_that_fails_leaves_the_default_policy(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = verdict(ValueError(answer), asking, failures=2)
    assert outcome.kind == OutcomeKind.FAILED
    assert 0 <= outcome.delay <= 8
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith("Backoff")
    assert "the default is used task=tests.asking id=the-id" in said


def test_a_stored_policy_goes_before_the_definitions_callable() -> None:
    assert verdict(ValueError(5), asking, backoff=Fixed(7).snapshot()).delay == 7


def test_the_backoff_counts_failures_from_one() -> None:
    linear = Linear(10).snapshot()
    assert [verdict(ValueError(), failures=n, backoff=linear).delay for n in (0, 1, 2)] == [
        10,
        20,
        30,
    ]


@pytest.mark.parametrize("delay", [3, 3.0, timedelta(seconds=3)])
def test_a_body_may_name_its_own_delay(delay: Any) -> None:
    later, snooze = verdict(RetryLater(delay)), verdict(Snooze(delay))
    assert (later.kind, later.delay) == (OutcomeKind.RETRY_LATER, 3.0)
    assert (snooze.kind, snooze.delay, snooze.error_class) == (OutcomeKind.SNOOZED, 3.0, "")
    assert not verdict(GiveUp("no use"), max_attempts=9).retryable


IMPOSSIBLE = [-1, math.nan, math.inf, timedelta(-1), timedelta.max, 1e18, 10**400, "soon", None]


@pytest.mark.parametrize("delay", IMPOSSIBLE, ids=lambda delay: str(delay)[:20])
@pytest.mark.parametrize("directive", [RetryLater, Snooze])
def test_an_impossible_delay_is_refused_in_the_body(directive: Any, delay: Any) -> None:
    with pytest.raises(ValueError, match="must be 0 or more seconds") as refusal:
        directive(delay)
    assert str(refusal.value).startswith(f"{directive.__name__}: the delay must be")
    assert "at most 100 years" in str(refusal.value)
