"""Ends that the checker must object to: invariants 6, 7, 9 and 14."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.history import EffectRow, Fault
from tests.chaos.story import Story, found

# 6


@pytest.mark.parametrize("attempts", [[], [2, 2], [1, 2], [1]])
def test_an_atomic_task_has_one_effect_of_its_success(story: Story, attempts: list[int]) -> None:
    task = story.enqueue(is_atomic=True)
    story.end(story.claim(task), "failed")
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    effects = tuple(EffectRow(task, attempt, "") for attempt in attempts)
    assert found(story.history(effects=effects)) == {6}
    assert found(story.history(effects=(EffectRow(task, 2, ""),))) == set()


def test_an_atomic_task_that_failed_has_no_effect(story: Story) -> None:
    task = story.enqueue(is_atomic=True)
    story.end(story.claim(task), "failed", "failed")
    assert found(story.history(effects=(EffectRow(task, 1, ""),))) == {6}
    assert found(story.history()) == set()


def test_the_effect_of_a_pruned_atomic_task_counts_too(story: Story) -> None:
    task = story.enqueue(is_atomic=True)
    story.end(story.claim(task), "succeeded")
    story.prune(task)
    assert found(story.history()) == {6}
    assert found(story.history(effects=(EffectRow(task, 1, ""),))) == set()


# 7


def test_only_transitions_of_the_table_happen(story: Story) -> None:
    task = story.enqueue()
    story.move(task, "retrying")
    story.move(task, "cancelled")
    assert found(story.history()) == {7}


def test_only_an_audited_retry_leaves_an_end(story: Story) -> None:
    task = story.enqueue()
    story.end(story.claim(task), "failed", "failed")
    story.retry_by_hand(task)
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == set()
    assert 7 in found(story.history(audits=()))


# 9


def test_a_task_must_not_fail_more_often_than_it_may(story: Story) -> None:
    task = story.enqueue(max_attempts=2)
    for _ in range(3):
        story.end(story.claim(task), "failed")
        story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {9}
    leases = tuple(
        lease._replace(error_class="taskqueue.exceptions.RetryLater")
        for lease in story.leases.values()
    )
    assert found(story.history(leases=leases)) == set()


def test_a_task_must_not_crash_more_often_than_it_may(story: Story) -> None:
    task = story.enqueue(max_crashes=2)
    for _ in range(3):
        story.end(story.claim(task), "lost")
        story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {9}


@pytest.mark.parametrize("column", ["failures", "crashes"])
def test_failures_and_crashes_are_counted(story: Story, column: str) -> None:
    task = story.enqueue()
    story.end(story.claim(task), {"failures": "failed", "crashes": "lost"}[column])
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == set()
    forgotten: dict[str, Any] = {column: 0}
    story.tasks[task] = story.tasks[task]._replace(**forgotten)
    assert found(story.history()) == {9}


# 14


def test_an_attempt_must_not_succeed_once_its_stop_was_seen(story: Story) -> None:
    lease = story.claim(story.enqueue())
    story.see_stop(lease)
    story.end(lease, "succeeded")
    assert found(story.history()) == {14}


def test_a_stopped_task_must_not_run_again(story: Story) -> None:
    task = story.enqueue()
    lease = story.claim(task)
    story.see_stop(lease)
    story.end(lease, "lost")
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {14}


def test_a_stop_ends_within_its_grace(story: Story) -> None:
    lease = story.claim(story.enqueue())
    story.see_stop(lease)
    seen_at = story.now
    story.now += 10
    story.end(lease, "stopped")
    assert found(story.history()) == {14}
    outage = Fault("nobody there", seen_at + 0.5, story.now - 1)
    assert found(story.history(faults=(outage,))) == set()
    too_late = Fault("nobody there", story.now - 0.1, story.now)
    assert found(story.history(faults=(too_late,))) == {14}
