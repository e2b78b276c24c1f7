"""Keys that the checker must object to: invariant 10."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.history import Enqueue
from tests.chaos.story import KEYED, Story, found


def test_two_tasks_must_not_hold_one_key(story: Story) -> None:
    for _ in range(2):
        task = story.enqueue(**KEYED)
        story.end(story.claim(task), "succeeded")
    assert found(story.history()) == set()
    first, second = story.enqueue(**KEYED), story.enqueue(**KEYED)
    story.end(story.claim(first), "succeeded")
    story.end(story.claim(second), "succeeded")
    assert found(story.history()) == {10}


def test_tasks_of_two_scopes_may_hold_one_key(story: Story) -> None:
    first, second = story.enqueue(**KEYED), story.enqueue(**{**KEYED, "unique_scope": "other"})
    story.end(story.claim(first), "succeeded")
    story.end(story.claim(second), "succeeded")
    assert found(story.history()) == set()


@pytest.mark.parametrize("created", [True, False])
def test_an_enqueue_in_one_scope_gets_no_task_of_another(story: Story, created: bool) -> None:
    holder = story.enqueue(**KEYED)
    story.end(story.claim(holder), "succeeded")
    answer = Enqueue(
        sequence=9, state="ok", unique_key="k", unique_scope="work", task_ids=(holder,),
        created=False,
    )  # fmt: skip
    assert found(story.history(enqueues=(*story.enqueues, answer))) == set()
    strange = replace(answer, unique_scope="other", created=created)
    assert 10 in found(story.history(enqueues=(*story.enqueues, strange)))


def test_a_key_that_nobody_held_counts_as_held(story: Story) -> None:
    promised = {**KEYED, "holds_unique_key": False}
    task = story.enqueue(**promised)
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {10}


def test_a_key_is_not_released_before_its_time(story: Story) -> None:
    task = story.enqueue(**KEYED)
    story.tasks[task] = story.tasks[task]._replace(holds_unique_key=False)
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {10}


def test_a_key_for_the_start_is_free_from_the_claim_on(story: Story) -> None:
    first = story.enqueue(**{**KEYED, "unique_for": "started"})
    lease = story.claim(first)
    second = story.enqueue(**{**KEYED, "unique_for": "started"})
    story.end(lease, "succeeded")
    story.end(story.claim(second), "succeeded")
    assert found(story.history()) == set()


def test_an_enqueue_that_loses_the_race_gets_the_holder(story: Story) -> None:
    story.end(story.claim(story.enqueue()), "succeeded")
    answer = Enqueue(sequence=9, state="ok", unique_key="k", task_ids=("task-1",), created=False)
    assert found(story.history(enqueues=(*story.enqueues, answer))) == {10}
