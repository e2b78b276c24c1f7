"""Workflows that the checker must object to: invariant 12."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.history import AuditRow, History
from tests.chaos.story import Story, found
from tests.chaos.workflow_rows import EdgeRow, MemberRow, NoteRow, StepRow, WorkflowRow

WORKFLOW = WorkflowRow("w", "chord", "succeeded", 0, None, was_stopped=False, trouble="")


def step(id: int, *, kind: str = "task", status: str = "succeeded", members: int = 1) -> StepRow:
    return StepRow(id, "w", f"s{id}", kind, status, members, members, 0, "fail", False)


def chord(story: Story, **changed: Any) -> History:
    """Two members, and what follows them."""
    tasks = [story.enqueue() for _ in range(3)]
    for task in tasks:
        story.end(story.claim(task), "succeeded")
    history = story.history(
        workflows=(WORKFLOW,),
        steps=(step(1, kind="map", members=2), step(2)),
        edges=(EdgeRow(1, 2, "succeeded"),),
        members=(
            MemberRow(tasks[0], 1, 0, "succeeded", 1),
            MemberRow(tasks[1], 1, 1, "succeeded", 2),
            MemberRow(tasks[2], 2, 0, "succeeded", [1, 2]),
        ),
    )
    return replace(history, **changed)


def test_a_correct_chord_is_clean(story: Story) -> None:
    assert found(chord(story)) == set()


def test_nothing_runs_before_what_it_depends_on(story: Story) -> None:
    history = chord(story)
    assert found(replace(history, edges=(EdgeRow(2, 1, "succeeded"),))) == {12}


def test_a_step_behind_a_join_must_wait_too(story: Story) -> None:
    history = chord(story)
    join = step(3, kind="join", members=0)
    edges = (EdgeRow(2, 3, "succeeded"), EdgeRow(3, 1, "succeeded"))
    assert found(replace(history, steps=(*history.steps, join), edges=edges)) == {12}


PARENT = WORKFLOW._replace(id="above")
REOPENED = [
    ("retry", "w", set()),
    ("resolve", "w", set()),
    ("retry", "above", set()),
    ("cancel", "w", {12}),
    ("retry", "another", {12}),
]


@pytest.mark.parametrize("is_claimed_late", [False, True], ids=["claimed", "sent"])
@pytest.mark.parametrize(("verb", "subject", "expected"), REOPENED)
def test_members_that_a_retry_sends_may_come_behind_what_followed_their_cancelled_map(
    story: Story, verb: str, subject: str, expected: set[int], is_claimed_late: bool
) -> None:
    behind = story.enqueue()
    if not is_claimed_late:
        story.end(story.claim(behind), "succeeded")
    reopened = AuditRow(story.now, "eve", verb, subject, "", "failed")
    members = [story.enqueue() for _ in range(2)]
    if is_claimed_late:
        story.end(story.claim(behind), "succeeded")
    for task in members:
        story.end(story.claim(task), "succeeded")
    history = story.history(
        workflows=(PARENT, WORKFLOW._replace(parent_step_id=3)),
        steps=(
            step(3, kind="workflow", members=1)._replace(workflow_id="above"),
            step(1, kind="map", members=2),
            step(2),
        ),
        edges=(EdgeRow(1, 2, "ended"),),
        members=(
            *(MemberRow(task, 1, place, "succeeded", 1) for place, task in enumerate(members)),
            MemberRow(behind, 2, 0, "succeeded", None),
        ),
    )
    assert found(replace(history, audits=(*history.audits, reopened))) == expected


@pytest.mark.parametrize("verb", ["retry", "resolve"])
def test_a_step_that_is_sent_after_a_retry_waits_for_what_the_retry_sends(
    story: Story, verb: str
) -> None:
    reopened = AuditRow(story.now, "eve", verb, "w", "", "failed")
    member, behind = story.enqueue(), story.enqueue()
    story.end(story.claim(behind), "succeeded")
    story.end(story.claim(member), "succeeded")
    history = story.history(
        workflows=(WORKFLOW,),
        steps=(step(1, kind="map"), step(2)),
        edges=(EdgeRow(1, 2, "ended"),),
        members=(MemberRow(member, 1, 0, "succeeded", 1), MemberRow(behind, 2, 0, "succeeded", 1)),
    )
    assert found(replace(history, audits=(*history.audits, reopened))) == {12}


def test_a_place_has_one_task(story: Story) -> None:
    history = chord(story)
    twice = [member._replace(place=0) for member in history.members]
    assert found(replace(history, members=tuple(twice))) == {12}


@pytest.mark.parametrize(
    "changed",
    [
        {"workflows": (WORKFLOW._replace(status="running"),)},
        {"workflows": (WORKFLOW._replace(open_steps=1),)},
        {"workflows": (WORKFLOW._replace(trouble="KeyError"),)},
        {"workflows": (WORKFLOW._replace(total_steps=3, members=3),)},
        {"workflows": (WORKFLOW._replace(total_steps=2, members=4),)},
        {"repairs": 1},
        {"notes": (NoteRow("t", 1, "succeeded"),)},
        {"steps": (step(1, kind="map", members=2)._replace(ended=3), step(2))},
        {"steps": (step(1, kind="map", members=2)._replace(failures=1), step(2))},
        {"steps": (step(1, kind="map", members=2)._replace(members=3), step(2))},
    ],
    ids=[
        "not ended",
        "open steps",
        "trouble",
        "total steps",
        "all members",
        "repairs",
        "notes",
        "ended",
        "failures",
        "members",
    ],
)
def test_ends_are_counted_once(story: Story, changed: dict[str, Any]) -> None:
    assert found(chord(story, **changed)) == {12}


def test_a_workflow_does_not_succeed_without_a_step_that_failed(story: Story) -> None:
    history = chord(story)
    failed = step(3, status="failed", members=0)
    assert found(replace(history, steps=(*history.steps, failed))) == {12}
    forgiven = failed._replace(on_failure="continue")
    assert found(replace(history, steps=(*history.steps, forgiven))) == set()


@pytest.mark.parametrize(
    ("status", "members", "expected"),
    [("failed", 5, set()), ("failed", 1, {12}), ("succeeded", 5, {12})],
)
def test_members_that_were_kept_from_being_sent_count_where_their_map_failed(
    story: Story, status: str, members: int, expected: set[int]
) -> None:
    history = chord(
        story,
        workflows=(WORKFLOW._replace(status=status, total_steps=1, members=members),),
        steps=(step(1, kind="map", status=status, members=2),),
        edges=(),
    )
    kept = tuple(member for member in history.members if member.step_id == 1)
    assert found(replace(history, members=kept)) == expected


def test_the_tasks_of_a_child_wait_for_what_its_step_depends_on(story: Story) -> None:
    history = chord(story)
    child = WORKFLOW._replace(id="c", parent_step_id=1)
    parent = step(1, kind="workflow")
    inner = step(3)._replace(workflow_id="c")
    members = (history.members[0]._replace(step_id=3, place=0), history.members[2])
    changed = replace(
        history,
        workflows=(WORKFLOW, child),
        steps=(parent, step(2), inner),
        edges=(EdgeRow(2, 1, "succeeded"),),
        members=members,
    )
    assert found(changed) == {12}
    assert found(replace(changed, edges=(EdgeRow(1, 2, "succeeded"),))) == set()


def test_steps_end_as_the_rules_say(story: Story) -> None:
    skipped = step(3, status="skipped", members=0)
    history = chord(story)
    steps, edges = (*history.steps, skipped), (*history.edges, EdgeRow(1, 3, "failed"))
    assert found(replace(history, steps=steps, edges=edges)) == set()
    behind = EdgeRow(3, 2, "succeeded")
    assert found(replace(history, steps=steps, edges=(behind, EdgeRow(1, 3, "failed")))) == {12}


def tree(story: Story, **changed: Any) -> History:
    """A member that returned two leaves at its second attempt, and what follows it."""
    tasks = [story.enqueue() for _ in range(4)]
    story.end(story.claim(tasks[0]), "failed", after="retrying")
    story.move(tasks[0], "ready")
    for task in tasks:
        story.end(story.claim(task), "succeeded")
    fan = step(2, kind="map", members=2)._replace(parent_step_id=1, parent_place=0)
    history = story.history(
        workflows=(WORKFLOW,),
        steps=(step(1), fan, step(3)),
        edges=(EdgeRow(1, 3, "succeeded"),),
        members=(
            MemberRow(tasks[0], 1, 0, "succeeded", None),
            MemberRow(tasks[1], 2, 0, "succeeded", ["0", 2]),
            MemberRow(tasks[2], 2, 1, "succeeded", ["1", 2]),
            MemberRow(tasks[3], 3, 0, "succeeded", ["0", "1"]),
        ),
    )
    return replace(history, **changed)


def test_a_correct_tree_is_clean(story: Story) -> None:
    assert found(tree(story)) == set()


def test_a_call_of_an_attempt_that_failed_does_not_run(story: Story) -> None:
    history = tree(story)
    members = [member._replace(return_value=["0", 1]) for member in history.members[1:2]]
    changed = (history.members[0], *members, *history.members[2:])
    assert found(replace(history, members=changed)) == {12}


def test_a_step_after_a_tree_must_wait_for_its_leaves(story: Story) -> None:
    history = tree(story)
    leaf, after = history.members[2], history.members[3]
    swapped = (*history.members[:2], leaf._replace(task_id=after.task_id))
    last = after._replace(task_id=leaf.task_id)
    assert found(replace(history, members=(*swapped, last))) == {12}


def test_a_failed_fan_out_is_a_failure_of_its_member(story: Story) -> None:
    history = tree(story)
    failed = history.steps[1]._replace(status="failed")
    assert found(replace(history, steps=(history.steps[0], failed, history.steps[2]))) == {12}


def test_a_cancelled_fan_out_stays_in_a_retry_whose_step_succeeded_without_it(story: Story) -> None:
    history = tree(story)
    tolerant = history.steps[0]._replace(failures=1)
    cut = history.steps[1]._replace(status="cancelled", members=0, ended=0)
    cancelled = replace(
        history,
        steps=(tolerant, cut, history.steps[2]),
        members=(history.members[0], history.members[3]._replace(return_value=None)),
    )
    assert found(cancelled) == {12}
    retried = AuditRow(story.now, "eve", "retry", "w", "", "cancelled")
    assert found(replace(cancelled, audits=(*cancelled.audits, retried))) == set()
