"""Leases that the checker must object to: invariants 3, 4 and 5."""

from __future__ import annotations

import pytest

from taskqueue.engine.lost import ENDED_BY_HAND
from taskqueue.engine.takeover import ENDED_ON_HOST
from tests.chaos.history import AuditRow, Change, Death
from tests.chaos.story import Story, found

# 3


def test_two_leases_must_not_run_at_once(story: Story) -> None:
    task = story.enqueue()
    first, second = story.claim(task), story.claim(task, "bob")
    story.end(first, "failed")
    story.end(second, "succeeded")
    assert 3 in found(story.history())


def test_a_lease_that_never_ended_overlaps_the_next(story: Story) -> None:
    task = story.enqueue()
    story.claim(task)
    story.end(story.claim(task, "bob"), "succeeded")
    assert 3 in found(story.history(changes=(), has_changes=False))


def test_the_attempt_of_a_task_rises_with_each_lease(story: Story) -> None:
    task = story.enqueue()
    story.end(story.claim(task), "succeeded")
    story.tasks[task] = story.tasks[task]._replace(attempt=0)
    assert found(story.history()) == {3}


def test_a_body_must_not_go_on_once_the_next_has_begun(story: Story) -> None:
    task = story.enqueue()
    first = story.claim(task)
    story.run(first)
    story.lose(first)
    story.move(task, "ready")
    second = story.claim(task, "bob")
    story.run(second)
    story.lines.append(story.lines[0]._replace(at=story.now + 0.5, text="end"))
    story.end(second, "succeeded")
    assert found(story.history()) == {3}


def test_an_attempt_must_not_run_twice(story: Story) -> None:
    lease = story.claim(story.enqueue())
    story.run(lease)
    story.run(lease)
    story.end(lease, "succeeded")
    assert found(story.history()) == {3}


# 4


def test_a_lease_must_not_be_taken_over_early(story: Story) -> None:
    task = story.enqueue()
    lease = story.claim(task)
    story.lose(lease)
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    row = story.leases[lease]
    story.leases[lease] = row._replace(expires_at=story.now + 1)
    assert found(story.history()) == {4}


def ended_early(story: Story, error: str) -> str:
    task = story.enqueue()
    story.lose_early(story.claim(task), error)
    story.move(task, "ready")
    story.end(story.claim(task, "bob"), "succeeded")
    return task


def test_a_worker_must_not_be_taken_for_dead_that_nobody_ended(story: Story) -> None:
    ended_early(story, ENDED_ON_HOST)
    assert found(story.history()) == {4}
    assert found(story.history(deaths=(Death("bob", story.now),))) == {4}
    claimed = story.history().leases[0].claimed_at
    assert found(story.history(deaths=(Death("ada", claimed),))) == set()


def test_a_lease_must_not_be_ended_by_hand_without_an_audit(story: Story) -> None:
    task = ended_early(story, ENDED_BY_HAND)
    at = story.history().leases[0].finished_at
    assert at is not None
    assert 4 in found(story.history())
    line = AuditRow(at, "anna", "retry", task, "", "running")
    assert 4 not in found(story.history(audits=(line,)))
    assert 4 in found(story.history(audits=(line._replace(at=at - 60),)))


# 5


@pytest.mark.parametrize("after", ["lost", "succeeded"])
def test_an_ended_lease_must_not_change(story: Story, after: str) -> None:
    task = story.enqueue()
    lease = story.claim(task)
    story.lose(lease)
    story.move(task, "ready")
    story.end(story.claim(task, "bob"), "succeeded")
    late = Change(99, story.now, "lease", task, 1, "lost", after, "ada")
    assert found(story.history(changes=(*story.changes, late))) == {5}


def test_a_line_must_not_be_written_after_the_end(story: Story) -> None:
    task = story.enqueue()
    story.end(story.claim(task), "succeeded")
    late = Change(99, story.now, "log", task, 1, "succeeded", "succeeded", "ada")
    assert found(story.history(changes=(*story.changes, late))) == {5}


def test_a_task_must_not_be_ended_by_another_lease(story: Story) -> None:
    task = story.enqueue()
    first = story.claim(task)
    story.lose(first)
    story.move(task, "ready")
    story.claim(task, "bob")
    story.now += 1
    story.move(task, "succeeded")
    assert 5 in found(story.history())


def test_a_task_must_not_succeed_where_its_last_lease_did_not(story: Story) -> None:
    task = story.enqueue()
    story.end(story.claim(task), "failed", "failed")
    story.tasks[task] = story.tasks[task]._replace(status="succeeded")
    assert found(story.history(changes=(), has_changes=False)) == {5}


def test_bodies_of_a_deleted_task_may_overlap_where_several_workers_may_have_run_it(
    story: Story,
) -> None:
    task = story.enqueue()
    leases = [story.claim(task)]
    story.end(leases[0], "failed")
    story.move(task, "ready")
    leases.append(story.claim(task))
    for lease in reversed(leases):
        story.run(lease)
    story.end(leases[1], "succeeded")
    story.prune(task)
    assert 3 in found(story.history())
    assert 3 not in found(story.history(enqueues=()))
