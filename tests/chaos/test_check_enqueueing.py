"""Enqueues that the checker must object to: invariants 1, 2 and 17."""

from __future__ import annotations

import pytest

from tests.chaos.history import EffectRow, Enqueue, Line, Sample
from tests.chaos.story import Story, found

# 1


def test_a_task_that_vanished_is_lost(story: Story) -> None:
    task = story.enqueue()
    del story.tasks[task]
    story.changes.clear()
    assert found(story.history()) == {1}


def test_a_task_that_does_not_end_is_lost_once_the_run_is_over(story: Story) -> None:
    story.enqueue()
    assert found(story.history()) == {1}
    assert found(story.history(is_over=False)) == set()


def test_a_task_that_was_deleted_before_its_end_is_lost(story: Story) -> None:
    task = story.enqueue()
    story.prune(task)
    assert 1 in found(story.history())


def test_an_enqueue_without_an_answer_happens_as_a_whole_or_not_at_all(story: Story) -> None:
    task = story.enqueue()
    story.end(story.claim(task), "succeeded")
    story.enqueues[0] = Enqueue(sequence=1, state="unknown", count=2)
    assert found(story.history()) == {1}
    story.enqueues[0] = Enqueue(sequence=1, state="asked", count=1)
    assert found(story.history()) == set()


# 2


@pytest.mark.parametrize(
    "enqueues",
    [
        (Enqueue(sequence=1, state="failed"),),
        (Enqueue(sequence=2, state="unknown"),),
        (Enqueue(sequence=1, state="ok", task_ids=("another",), created=False),),
    ],
    ids=["rolled back", "nobody asked", "answered with another"],
)
def test_a_task_whose_enqueue_was_rolled_back_must_not_exist(
    story: Story, enqueues: tuple[Enqueue, ...]
) -> None:
    story.end(story.claim(story.enqueue()), "succeeded")
    assert 2 in found(story.history(enqueues=enqueues))


def test_an_effect_of_an_unknown_task_is_found(story: Story) -> None:
    assert found(story.history(effects=(EffectRow("none", 1, ""),))) == {2}
    assert found(story.history(lines=(Line("none", 1, 1, 1.0, "start"),))) == {2}


# 17


def test_counts_and_what_was_pruned_make_up_what_was_enqueued(story: Story) -> None:
    story.samples.append(Sample(1.0, {"ready": 2, "running": 1}, enqueued=4, pruned=1))
    assert found(story.history()) == set()
    story.samples.append(Sample(2.0, {"ready": 2}, enqueued=4, pruned=1))
    assert found(story.history()) == {17}


def test_a_missing_task_that_was_not_pruned_is_found(story: Story) -> None:
    task = story.enqueue()
    story.end(story.claim(task), "succeeded")
    del story.tasks[task]
    assert 17 in found(story.history())
