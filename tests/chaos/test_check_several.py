"""Tasks for several workers that the checker must object to: invariant 16."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.story import Story, found


def test_no_more_workers_than_asked_for(story: Story) -> None:
    task = story.enqueue(workers=2)
    leases = [story.claim(task, name) for name in ("ada", "bob", "eve")]
    for lease in leases:
        story.end(lease, "succeeded")
    assert found(story.history()) >= {16}
    assert 16 in found(story.history(changes=(), has_changes=False))


def test_too_many_at_once_are_seen_though_one_of_them_fails(story: Story) -> None:
    task = story.enqueue(workers=2)
    ada, bob, eve = (story.claim(task, name) for name in ("ada", "bob", "eve"))
    story.end(eve, "failed")
    story.end(ada, "succeeded")
    story.end(bob, "succeeded")
    assert found(story.history()) == {16}


def test_no_worker_twice(story: Story) -> None:
    task = story.enqueue(workers=2)
    story.end(story.claim(task, "ada"), "succeeded")
    story.end(story.claim(task, "ada"), "succeeded")
    assert found(story.history()) == {16}


def test_a_failed_worker_may_try_again(story: Story) -> None:
    task = story.enqueue(workers=1, broadcast=True)
    story.end(story.claim(task, "ada"), "failed")
    story.end(story.claim(task, "ada"), "succeeded")
    assert found(story.history()) == set()


def test_a_task_succeeds_with_all_its_workers_only(story: Story) -> None:
    task = story.enqueue(workers=2)
    story.end(story.claim(task, "ada"), "succeeded")
    story.move(task, "succeeded")
    assert found(story.history()) == {16}


def test_a_task_is_for_as_many_workers_as_its_client_asked_for(story: Story) -> None:
    task = story.enqueue(workers=2, broadcast=True)
    for name in ("ada", "bob"):
        story.end(story.claim(task, name), "succeeded")
    assert found(story.history()) == set()
    story.enqueues[0] = replace(story.enqueues[0], workers=3)
    assert found(story.history()) == {16}


def test_workers_are_counted(story: Story) -> None:
    task = story.enqueue(workers=2)
    story.end(story.claim(task, "ada"), "succeeded")
    story.end(story.claim(task, "bob"), "succeeded")
    story.tasks[task] = story.tasks[task]._replace(successes=1)
    assert found(story.history()) == {16}


def test_a_restart_lets_all_workers_run_it_anew(story: Story) -> None:
    task = story.enqueue(workers=2)
    for name in ("ada", "bob"):
        story.end(story.claim(task, name), "succeeded")
    story.retry_by_hand(task)
    for lease, row in story.leases.items():
        story.leases[lease] = row._replace(is_shared=False)
    story.tasks[task] = story.tasks[task]._replace(successes=0)
    for name in ("ada", "bob"):
        story.end(story.claim(task, name), "succeeded")
    assert found(story.history()) == set()
    rows = tuple(row._replace(is_shared=True) for row in story.leases.values())
    assert found(story.history(leases=rows)) == {16}


def test_a_broadcast_does_not_count_who_never_came_as_a_crash(story: Story) -> None:
    task = story.enqueue(workers=1, broadcast=True, max_crashes=1)
    story.end(story.claim(task, "ada"), "lost", error="The worker ended before it ran its part.")
    story.end(story.claim(task, "bob"), "succeeded")
    assert found(story.history()) == set()


def test_only_named_workers_take_a_task_that_names_them(story: Story) -> None:
    task = story.enqueue(worker_names=["bob"])
    story.end(story.claim(task, "ada"), "succeeded")
    assert found(story.history()) == {16}
