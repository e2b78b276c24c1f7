"""Contexts, callbacks and compensations that the checker must object to: invariant 12."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.history import AuditRow, History
from tests.chaos.story import Story, found
from tests.chaos.test_check_workflows import WORKFLOW, chord, step
from tests.chaos.workflow_rows import CallbackRow, EdgeRow, MemberRow, VerbRow

BODIES = "tests.chaos.workflow_bodies"


def marks(story: Story) -> History:
    """Two steps that leave marks, of which the second fails once."""
    tasks = [story.enqueue(name=f"{BODIES}.tell") for _ in range(2)]
    story.end(story.claim(tasks[0]), "succeeded")
    story.end(story.claim(tasks[1]), "failed", after="retrying")
    story.move(tasks[1], "ready")
    story.end(story.claim(tasks[1]), "succeeded")
    context: dict[str, object] = {"s1/0/1": True, "s2/0/2": True, "last": "s2/0/2"}
    return story.history(
        workflows=(WORKFLOW._replace(context=context),),
        steps=(step(1), step(2)),
        edges=(EdgeRow(1, 2, "succeeded"),),
        members=(
            MemberRow(tasks[0], 1, 0, "succeeded", ["found", None]),
            MemberRow(tasks[1], 2, 0, "succeeded", ["found", "s1/0/1"]),
        ),
    )


def test_a_correctly_folded_context_is_clean(story: Story) -> None:
    assert found(marks(story)) == set()


@pytest.mark.parametrize(
    "context",
    [
        {"s1/0/1": True, "last": "s1/0/1"},
        {"s1/0/1": True, "s2/0/1": True, "s2/0/2": True, "last": "s2/0/2"},
        {"s1/0/1": True, "s2/0/2": True, "last": "s1/0/1"},
    ],
    ids=["lost", "of a failed attempt", "in another order"],
)
def test_a_context_is_the_fold_of_successful_attempts(
    story: Story, context: dict[str, object]
) -> None:
    history = marks(story)
    assert found(replace(history, workflows=(WORKFLOW._replace(context=context),))) == {12}


def test_context_set_by_a_fan_out_outlives_its_retry(story: Story) -> None:
    history = marks(story)
    context = {**history.workflows[0].context, "s2/0/1": True}
    fan = history.steps[1]._replace(parent_step_id=1, parent_place=0)
    changed = replace(
        history,
        steps=(history.steps[0], fan),
        edges=(),
        workflows=(WORKFLOW._replace(context=context),),
    )
    assert found(changed) == {12}
    retry = AuditRow(story.now, "eve", "retry", "w", "", "failed", "from step s1")
    assert found(replace(changed, audits=(retry,))) == set()


def test_context_set_by_an_unlike_member_outlives_its_retry(story: Story) -> None:
    history = marks(story)
    context = {**history.workflows[0].context, "s2/1/1": True}
    changed = replace(history, workflows=(WORKFLOW._replace(context=context),))
    retry = AuditRow(story.now, "eve", "retry", "w", "", "failed", "from step s1")
    assert found(replace(changed, audits=(retry,))) == {12}
    unlike = history.steps[1]._replace(is_unlike=True)
    steps = (history.steps[0], unlike)
    assert found(replace(changed, steps=steps)) == {12}
    assert found(replace(changed, steps=steps, audits=(retry,))) == set()


@pytest.mark.parametrize("value", [None, "s2/0/2"])
def test_a_body_finds_values_that_earlier_steps_have_set(story: Story, value: object) -> None:
    history = marks(story)
    first, second = history.members
    changed = second._replace(return_value=["found", value])
    expected = {12} if value is None else set()  # Later marks are not older.
    assert found(replace(history, members=(first, changed))) == expected


def test_a_body_does_not_find_what_was_overwritten_before_it(story: Story) -> None:
    history = marks(story)
    third = story.enqueue(name=f"{BODIES}.tell")
    story.end(story.claim(third), "succeeded")
    context = {**history.workflows[0].context, "s3/0/1": True, "last": "s3/0/1"}
    last = MemberRow(third, 3, 0, "succeeded", ["found", "s2/0/2"])

    def told(member: MemberRow) -> History:
        return story.history(
            workflows=(WORKFLOW._replace(context=context),),
            steps=(*history.steps, step(3)),
            edges=(*history.edges, EdgeRow(1, 3, "succeeded"), EdgeRow(2, 3, "succeeded")),
            members=(*history.members, member),
        )

    assert found(told(last)) == set()
    assert found(told(last._replace(return_value=["found", "s1/0/1"]))) == {12}


def called(story: Story, *, times: int = 1, early: bool = False) -> History:
    """A chord at whose end something is called."""
    before = [story.enqueue(name=f"{BODIES}.ended")] if early else []
    history = chord(story)
    story.move_workflow("w", "running", "succeeded")
    tasks = before or [story.enqueue(name=f"{BODIES}.ended") for _ in range(times)]
    for task in tasks:
        story.end(story.claim(task), "succeeded")
    ended = story.history()
    return replace(
        history,
        tasks=ended.tasks,
        leases=ended.leases,
        changes=ended.changes,
        enqueues=ended.enqueues,
        workflows=(WORKFLOW._replace(callback="k"),),
        callbacks=tuple(CallbackRow(task, "k") for task in tasks),
    )


@pytest.mark.parametrize(("times", "expected"), [(1, set()), (0, {12}), (2, {12})])
def test_a_callback_is_called_once_for_each_end(
    story: Story, times: int, expected: set[int]
) -> None:
    assert found(called(story, times=times)) == expected


def test_the_callbacks_of_a_child_that_a_retry_deleted_are_not_those_of_the_new_one(
    story: Story,
) -> None:
    deleted = story.enqueue(name=f"{BODIES}.ended")
    story.end(story.claim(deleted), "succeeded")
    created_at = story.now + 0.5
    history = called(story)
    callbacks = (*history.callbacks, CallbackRow(deleted, "k"))
    row = history.workflows[0]
    assert found(replace(history, callbacks=callbacks)) == {12}
    new = row._replace(created_at=created_at)
    assert found(replace(history, callbacks=callbacks, workflows=(new,))) == set()


def test_a_callback_is_called_after_the_ends_of_members(story: Story) -> None:
    history = called(story, early=True)
    first = min(change.number for change in history.changes)
    # Members that are made later do not count: they are there before the callback.
    moved = tuple(
        change._replace(number=first + 3.5) if change.number == first else change  # type: ignore[arg-type]
        for change in history.changes
    )
    assert found(replace(history, changes=moved)) == {12}


def results(story: Story, name: str, value: object) -> History:
    """A chord whose last task has that name and result."""
    history = chord(story)
    *others, last = history.members
    tasks = tuple(
        task._replace(name=f"{BODIES}.{name}") if task.id == last.task_id else task
        for task in history.tasks
    )
    return replace(history, tasks=tasks, members=(*others, last._replace(return_value=value)))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("together", [1, 2], set()),
        ("together", [2, 1], {12}),
        ("together", [1], {12}),
        ("gathered", ["00", "01"], {12}),
    ],
)
def test_callbacks_are_given_all_results_in_order(
    story: Story, name: str, value: object, expected: set[int]
) -> None:
    assert found(results(story, name, value)) == expected


def undone(story: Story, **changed: Any) -> History:
    """Two steps that succeeded, one that failed, and the two compensations."""
    tasks = [story.enqueue(status="blocked") for _ in range(3)]
    for task, status in zip(tasks, ("succeeded", "succeeded", "failed"), strict=True):
        story.move(task, "ready")
        story.end(story.claim(task), status, after=status)
    for _ in range(2):
        tasks.append(story.enqueue())
        story.end(story.claim(tasks[-1]), "succeeded")
    first, second = (
        step(id)._replace(has_compensation=True, finished_at=float(id)) for id in (1, 2)
    )
    history = story.history(
        workflows=(WORKFLOW._replace(status="failed"),),
        steps=(
            first,
            second,
            step(3, status="failed")._replace(failures=1),
            step(4)._replace(compensates_id=2),
            step(5)._replace(compensates_id=1),
        ),
        edges=(EdgeRow(1, 2, "succeeded"), EdgeRow(2, 3, "succeeded")),
        members=tuple(
            MemberRow(task, id, 0, status, value)
            for task, id, status, value in zip(
                tasks,
                range(1, 6),
                ("succeeded", "succeeded", "failed", "succeeded", "succeeded"),
                ("a", "b", None, "b", "a"),
                strict=True,
            )
        ),
    )
    return replace(history, **changed)


def test_successes_that_were_undone_as_they_should(story: Story) -> None:
    assert found(undone(story)) == set()


def test_compensations_are_claimed_after_a_cancel(story: Story) -> None:
    history = undone(story)
    (*_, before, first, last) = [lease.claimed_at for lease in history.leases]
    cancel = VerbRow("w", "cancel", before + 0.1, before + 0.2)
    assert before < first < last
    assert found(replace(history, verbs=(cancel,))) == set()


def test_successes_are_undone_once(story: Story) -> None:
    history = undone(story)
    *others, last = history.steps
    assert found(replace(history, steps=tuple(others), members=history.members[:-1])) == {12}
    twice = last._replace(compensates_id=2)
    members = (*history.members[:-1], history.members[-1]._replace(return_value="b"))
    assert found(replace(history, steps=(*others, twice), members=members)) == {12}


def test_a_workflow_that_succeeded_is_not_undone(story: Story) -> None:
    history = undone(story)
    forgiven = history.steps[2]._replace(on_failure="continue")
    steps = (*history.steps[:2], forgiven, *history.steps[3:])
    assert found(replace(history, steps=steps, workflows=(WORKFLOW,))) == {12}


def test_compensations_must_run_in_reverse_order(story: Story) -> None:
    history = undone(story)
    first = history.steps[0]._replace(finished_at=3.0)
    assert found(replace(history, steps=(first, *history.steps[1:]))) == {12}


def test_compensations_run_one_by_one_once_nothing_else_runs(story: Story) -> None:
    history = undone(story)
    members = list(history.members)
    for here, there in ((3, 4), (2, 3)):
        swapped = [*members]
        swapped[here] = members[here]._replace(task_id=members[there].task_id)
        swapped[there] = members[there]._replace(task_id=members[here].task_id)
        assert found(replace(history, members=tuple(swapped))) == {12}


def test_a_compensation_is_given_the_result(story: Story) -> None:
    history = undone(story)
    members = (*history.members[:-1], history.members[-1]._replace(return_value="b"))
    assert found(replace(history, members=members)) == {12}
