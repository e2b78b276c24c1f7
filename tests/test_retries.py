"""How long to wait before the next attempt: the policies, their jitter, limits and snapshots."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue import Exponential, Fibonacci, Fixed, Linear, task
from taskqueue.core.retries import (
    DEFAULT,
    LONGEST,
    POLICIES,
    Backoff,
    from_snapshot,
    seconds_of,
)
from taskqueue.declarations import snapshots as stored
from taskqueue.definitions import Definition
from taskqueue.models import Task
from tests.engine.steps import task_of
from tests.sample import tasks

HOUR = 3600.0


def delays(policy: Backoff, count: int = 8) -> list[float]:
    return [policy.base_delay(failures) for failures in range(1, count + 1)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Fixed(5), [5] * 8),
        (Fixed(), [10] * 8),
        (Fixed(0), [0] * 8),
        (Linear(10), [10, 20, 30, 40, 50, 60, 70, 80]),
        (Linear(10, cap=35), [10, 20, 30, 35, 35, 35, 35, 35]),
        (Exponential(), [2, 4, 8, 16, 32, 64, 128, 256]),
        (Exponential(base=3, cap=100), [3, 9, 27, 81, 100, 100, 100, 100]),
        (Exponential(factor=5), [10, 20, 40, 80, 160, 320, 640, 1280]),
        (Exponential(base=1.5, factor=10, cap=30), [15, 22.5, 30, 30, 30, 30, 30, 30]),
        (Exponential(base=0.5), [0.5**n for n in range(1, 9)]),
        (Fibonacci(), [1, 1, 2, 3, 5, 8, 13, 21]),
        (Fibonacci(10, cap=45), [10, 10, 20, 30, 45, 45, 45, 45]),
        (Fibonacci(0), [0] * 8),
        (Linear(timedelta(minutes=1), cap=timedelta(minutes=2)), [60] + [120] * 7),
    ],
    ids=repr,
)
def test_a_policy_waits_as_its_name_says(policy: Backoff, expected: list[float]) -> None:
    assert delays(policy) == expected
    assert Linear(1).base_delay(1) == 1.0


def test_the_default_is_exponential_with_a_cap_of_an_hour_and_full_jitter() -> None:
    assert Exponential(base=2, cap=3600, jitter=1) == DEFAULT
    assert DEFAULT.base_delay(100) == HOUR


policies = st.one_of(
    st.builds(Fixed, st.floats(0, LONGEST), jitter=st.floats(0, 1)),
    *[
        st.builds(kind, st.floats(0, LONGEST), cap=st.floats(0, LONGEST), jitter=st.floats(0, 1))
        for kind in (Linear, Exponential, Fibonacci)
    ],
)


@given(policy=policies, failures=st.integers(min_value=1, max_value=2**31))
def test_no_number_of_failures_overflows_or_waits_longer_than_the_cap(
    policy: Backoff, failures: int
) -> None:
    base = policy.base_delay(failures)
    assert 0 <= base <= getattr(policy, "cap", LONGEST)
    for _ in range(5):
        delay = policy.delay(failures)
        assert isinstance(delay, float)
        assert base * (1 - policy.jitter) * (1 - 1e-9) <= delay <= base


@pytest.mark.parametrize("kind", [Linear, Exponential, Fibonacci])
def test_delays_never_shrink_as_failures_grow(kind: Any) -> None:
    grown = delays(kind(1.5, cap=LONGEST), 3000)
    assert grown == sorted(grown)
    assert grown[-1] <= LONGEST


def test_jitter_draws_from_its_whole_share_and_no_more() -> None:
    half = [Fixed(100, jitter=0.5).delay(1) for _ in range(2000)]
    assert min(half) >= 50
    assert max(half) <= 100
    assert min(half) < 55
    assert max(half) > 95
    full = [Exponential(base=100).delay(1) for _ in range(2000)]
    assert min(full) < 10
    assert max(full) > 90
    assert 40 < sum(full) / len(full) < 60


def test_without_jitter_the_delay_is_exact() -> None:
    assert {Linear(3).delay(2) for _ in range(20)} == {6.0}


@pytest.mark.parametrize("failures", [0, -5])
def test_the_count_of_failures_begins_at_one(failures: int) -> None:
    assert Linear(3).delay(failures) == 3.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fixed(-1),
        lambda: Fixed(LONGEST + 1),
        lambda: Fixed(math.nan),
        lambda: Fixed(10**400),
        lambda: Fixed(1, jitter=1.1),
        lambda: Fixed(1, jitter=-0.1),
        lambda: Linear(1, cap=math.inf),
        lambda: Exponential(base=timedelta(seconds=-1)),
        lambda: Fibonacci(1, cap=-1),
    ],
)
def test_an_impossible_policy_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="must be between 0 and"):
        make()


@pytest.mark.parametrize("value", ["1", None, True, [1]])
def test_a_policy_is_made_of_durations(value: Any) -> None:
    with pytest.raises(TypeError, match="a number of seconds or a timedelta"):
        Fixed(value)


@pytest.mark.parametrize("name", ["factor", "jitter"])
@pytest.mark.parametrize("value", ["5", None, True, timedelta(seconds=5)])
def test_a_wrong_type_in_a_policy_is_refused_with_its_name(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^Exponential: {name} must be a number, not "):
        Exponential(**{name: value})


def test_a_policy_is_immutable_and_equal_to_its_like() -> None:
    assert Fixed(5) == Fixed(timedelta(seconds=5))
    assert hash(Fixed(5)) == hash(Fixed(5.0))
    assert Fixed(5) != Linear(5)
    with pytest.raises(AttributeError):
        Fixed(5).seconds = 6  # type: ignore[misc]


@given(policy=policies)
def test_a_snapshot_gives_the_policy_back(policy: Backoff) -> None:
    assert from_snapshot(json.loads(json.dumps(policy.snapshot()))) == policy


def test_workers_of_an_older_version_read_policies_that_use_nothing_new() -> None:
    assert Exponential(base=3).snapshot().keys() == {"policy", "base", "cap", "jitter"}
    assert Exponential(factor=2).snapshot()["factor"] == 2


def test_every_policy_has_a_name_for_its_snapshot() -> None:
    assert POLICIES.keys() == {"fixed", "linear", "exponential", "fibonacci"}
    assert from_snapshot(None) == from_snapshot({}) == DEFAULT


@pytest.mark.parametrize("snapshot", [{"policy": "cubic"}, {"policy": "fixed", "slope": 1}])
def test_a_snapshot_of_a_newer_version_is_not_guessed_at(snapshot: Any) -> None:
    with pytest.raises((KeyError, TypeError)):
        from_snapshot(snapshot)


def test_a_duration_in_seconds_knows_no_overflow() -> None:
    assert seconds_of(timedelta(minutes=1)) == seconds_of(60) == 60.0
    assert (seconds_of(10**400), seconds_of(-(10**400))) == (math.inf, -math.inf)


@pytest.mark.django_db
def test_a_task_keeps_the_policy_of_the_moment_it_was_enqueued() -> None:
    definition = tasks.noop.using(backoff=Fixed(7), retry_for=[OSError], timeout=3)
    snapshot = task_of(definition.enqueue()).options
    assert snapshot == {
        "backoff": {"policy": "fixed", "seconds": 7.0, "jitter": 0.0},
        "retry_for": ["builtins.OSError"],
        "timeout": 3.0,
    }
    assert stored.delay(snapshot, 5) == 7.0


@pytest.mark.django_db
def test_a_task_of_defaults_carries_no_options() -> None:
    tasks.noop.enqueue()
    assert Task.objects.get().options == {}


def _body() -> None: ...


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        ({}, ValueError, True),
        ({"retry_for": [OSError]}, OSError, True),
        ({"retry_for": [OSError]}, ConnectionResetError, True),
        ({"retry_for": [OSError]}, ValueError, False),
        ({"retry_for": []}, ValueError, False),
        ({"give_up_on": [ValueError]}, ValueError, False),
        ({"give_up_on": [ValueError]}, UnicodeDecodeError, False),
        ({"give_up_on": [UnicodeError]}, ValueError, True),
        ({"retry_for": [ValueError], "give_up_on": [UnicodeError]}, UnicodeError, False),
    ],
)
def test_classes_and_their_subclasses_decide_whether_a_failure_is_retried(
    options: Any, error: type[BaseException], expected: bool
) -> None:
    definition: Definition[Any, Any] = task(name="tests.retries", **options)(_body)
    assert stored.retries(json.loads(definition.snapshot), error) is expected
