"""Verbs on workflows with results that the checker must object to: invariant 12."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.history import History
from tests.chaos.story import Story, found
from tests.chaos.test_check_workflows import WORKFLOW, chord, step
from tests.chaos.workflow_rows import EdgeRow, MemberRow, VerbRow


def verb(name: str, asked_at: float, answered_at: float | None) -> VerbRow:
    return VerbRow("w", name, asked_at, answered_at)


def test_nothing_is_claimed_after_a_cancel_was_answered(story: Story) -> None:
    history = chord(story)
    claimed_at = max(lease.claimed_at for lease in history.leases)

    def cancelled(*verbs: VerbRow) -> History:
        return replace(history, verbs=verbs)

    early = verb("cancel", claimed_at - 0.5, claimed_at - 0.4)
    assert found(cancelled(early)) == {12}
    assert found(cancelled(verb("cancel", claimed_at - 0.5, claimed_at + 0.1))) == set()
    assert found(cancelled(verb("cancel", claimed_at - 0.5, None))) == set()
    assert found(cancelled(early, verb("retry", claimed_at - 0.3, None))) == set()


def test_nothing_is_released_in_a_pause(story: Story) -> None:
    history = chord(story)
    first = history.changes[0].at

    def paused(*verbs: VerbRow) -> History:
        return replace(history, verbs=verbs)

    assert found(paused(verb("pause", first - 0.5, first - 0.4))) == {12}
    resumed = verb("resume", first - 0.3, first - 0.2), verb("pause", first - 0.5, first - 0.4)
    assert found(paused(*resumed)) == set()
    assert found(paused(verb("pause", first - 0.5, None))) == set()


def retried(story: Story, *places: int, **audit: Any) -> History:
    """A chain of three of which the last fails, and these run once more."""
    tasks = [story.enqueue(status="blocked") for _ in range(3)]
    for task, status in zip(tasks, ("succeeded", "succeeded", "failed"), strict=True):
        story.move(task, "ready")
        story.end(story.claim(task), status, after=status)
    story.retry_workflow("w", *(tasks[place] for place in places), before="failed", **audit)
    for place in places:
        story.move(tasks[place], "ready")
        story.end(story.claim(tasks[place]), "succeeded")
    return story.history(
        workflows=(WORKFLOW,),
        steps=(step(1), step(2), step(3)),
        edges=(EdgeRow(1, 2, "succeeded"), EdgeRow(2, 3, "succeeded")),
        members=tuple(
            MemberRow(task, place, 0, "succeeded", 1) for place, task in enumerate(tasks, 1)
        ),
    )


@pytest.mark.parametrize(
    ("places", "detail", "expected"),
    [
        ((2,), "", set()),
        ((1, 2), "", {12}),
        ((1, 2), "from step s2", set()),
        ((0, 1, 2), "from step s1", set()),
        ((0, 1, 2), "from step s2", {12}),
    ],
)
def test_a_retry_runs_no_step_again_that_succeeded(
    story: Story, places: tuple[int, ...], detail: str, expected: set[int]
) -> None:
    assert found(retried(story, *places, detail=detail)) == expected


def test_compensated_steps_may_run_again(story: Story) -> None:
    story.move_workflow("w", "running", "compensating")
    assert found(retried(story, 0, 1, 2)) == set()


def test_a_retry_waits_for_earlier_steps_that_run_again(story: Story) -> None:
    history = retried(story, 1, 2, detail="from step s2")
    assert found(history) == set()
    swapped = [
        member._replace(task_id=history.members[3 - place].task_id)
        for place, member in enumerate(history.members[1:], 1)
    ]
    assert found(replace(history, members=(history.members[0], *swapped))) == {12}


@pytest.mark.parametrize(("detail", "expected"), [("", {12}), ("from step s3", set())])
def test_a_workflow_leaves_its_success_only_by_a_retry_from_a_step_on(
    story: Story, detail: str, expected: set[int]
) -> None:
    story.move_workflow("w", "running", "succeeded")
    story.retry_workflow("w", before="cancelled", detail=detail)
    story.changes.append(story.changes[-1]._replace(number=2, before="succeeded", after="running"))
    assert found(story.history(workflows=(WORKFLOW,))) == expected
