"""Groups of unlike calls that the checker must object to: invariant 12."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.history import History
from tests.chaos.story import Story, found
from tests.chaos.test_check_workflows import WORKFLOW, step
from tests.chaos.workflow_rows import EdgeRow, MemberRow

BODIES = "tests.chaos.workflow_bodies"
GIVEN = "tests.chaos.mixture_bodies.given"
CHILD = WORKFLOW._replace(id="c", name="child", parent_step_id=2, parent_place=1, last=("s4",))


def mixture(story: Story, *, limit: int = 2, is_apart: bool = False) -> History:
    """A step, a group of a task and a workflow, both of which read it, and what follows them.

    The two run at once, or one after the other.
    """
    names = ("part", GIVEN, GIVEN, f"{BODIES}.together")
    first, member, inner, last = (story.enqueue(name=name) for name in names)
    story.end(story.claim(first), "succeeded")
    if is_apart:
        story.end(story.claim(member), "succeeded")
        story.move_workflow("c", "", "running")
        story.end(story.claim(inner), "succeeded")
    else:
        story.move_workflow("c", "", "running")
        for lease in [story.claim(member), story.claim(inner)]:
            story.end(lease, "succeeded")
    story.move_workflow("c", "running", "succeeded")
    story.end(story.claim(last), "succeeded")
    return story.history(
        workflows=(WORKFLOW, CHILD),
        steps=(
            step(1)._replace(name="first"),
            step(2, kind="map", members=2)._replace(concurrency=limit),
            step(3),
            step(4)._replace(workflow_id="c"),
        ),
        edges=(EdgeRow(1, 2, "succeeded"), EdgeRow(2, 3, "succeeded")),
        members=(
            MemberRow(first, 1, 0, "succeeded", 7),
            MemberRow(member, 2, 0, "succeeded", 7),
            MemberRow(inner, 4, 0, "succeeded", 7),
            MemberRow(last, 3, 0, "succeeded", [7, 7]),
        ),
    )


def test_a_correct_mixture_is_clean(story: Story) -> None:
    assert found(mixture(story)) == set()


def test_a_place_has_a_task_or_a_workflow(story: Story) -> None:
    history = mixture(story)
    twice = CHILD._replace(parent_place=0)
    assert found(replace(history, workflows=(WORKFLOW, twice))) == {12}


@pytest.mark.parametrize(
    ("status", "failures", "expected"),
    [("failed", 0, {12}), ("failed", 1, set())],
)
def test_a_workflow_that_failed_is_a_failure_of_its_group(
    story: Story, status: str, failures: int, expected: set[int]
) -> None:
    history = mixture(story)
    steps = list(history.steps)
    steps[1] = steps[1]._replace(failures=failures)
    *others, last = history.members
    changed = replace(
        history,
        workflows=(WORKFLOW, CHILD._replace(status=status)),
        steps=tuple(steps),
        members=(*others, last._replace(return_value=[7, None])),
    )
    assert found(changed) == expected


def test_the_ends_of_workflows_are_counted(story: Story) -> None:
    history = mixture(story)
    steps = list(history.steps)
    steps[1] = steps[1]._replace(ended=1)
    assert found(replace(history, steps=tuple(steps))) == {12}


def test_a_step_after_a_mixture_waits_for_the_tasks_of_its_child_workflows(story: Story) -> None:
    history = mixture(story)
    first, member, inner, last = history.members
    swapped = (inner._replace(task_id=last.task_id), last._replace(task_id=inner.task_id))
    tasks = tuple(task._replace(name="part") for task in history.tasks)
    assert found(replace(history, tasks=tasks, members=(first, member, *swapped))) == {12}


@pytest.mark.parametrize("place", [1, 2])
def test_a_member_is_given_the_result_of_the_step_outside(story: Story, place: int) -> None:
    history = mixture(story)
    members = list(history.members)
    members[place] = members[place]._replace(return_value=8)
    members[3] = members[3]._replace(return_value=[8, 7] if place == 1 else [7, 8])
    assert found(replace(history, members=tuple(members))) == {12}


@pytest.mark.parametrize("value", [[7], [7, None], [7, {"s4": 7}], 7])
def test_a_step_after_a_mixture_receives_all_results_in_order(story: Story, value: object) -> None:
    history = mixture(story)
    members = list(history.members)
    members[3] = members[3]._replace(return_value=value)
    assert found(replace(history, members=tuple(members))) == {12}


def test_a_group_runs_no_more_members_than_it_may(story: Story) -> None:
    assert found(mixture(story, limit=1)) == {12}


def test_a_workflow_that_is_cancelled_before_it_sends_a_task_takes_no_room(story: Story) -> None:
    history = mixture(story, limit=1, is_apart=True)
    member = next(each for each in history.changes if each.task_id == history.members[1].task_id)
    began = member._replace(number=member.number, noun="workflow", task_id="c", after="running")
    ended = began._replace(before="running", after="cancelled")
    assert found(replace(history, changes=(*history.changes, began, ended))) == set()


def test_a_member_that_ended_makes_room_for_the_next(story: Story) -> None:
    assert found(mixture(story, limit=1, is_apart=True)) == set()
