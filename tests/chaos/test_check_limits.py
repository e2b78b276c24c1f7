"""Limits that the checker must object to: invariant 13."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.history import Fault, History, Line, Stall
from tests.chaos.limit_rows import LeftRow, LimitChange, LimitedRow, ServingRow
from tests.chaos.story import Story, found

TWO = {"name": "two", "key": "7", "per": "key", "concurrency": 2}
RATE = {"name": "rate", "key": "", "per": "key", "rate": 2, "seconds": 10.0}


def limited(story: Story, *limits: dict[str, Any], **needs: Any) -> tuple[LimitedRow, ...]:
    """All tasks of the story are under these limits."""
    return tuple(LimitedRow(id, "default", list(limits), **needs) for id in story.tasks)


def run_at_once(story: Story, number: int) -> None:
    """So many tasks run at the same time, and end."""
    leases = [story.claim(task) for task in [story.enqueue() for _ in range(number)]]
    for lease in leases:
        story.run(lease)
        story.end(lease, "succeeded")


def test_no_more_may_run_than_the_limit_allows(story: Story) -> None:
    run_at_once(story, 3)
    assert found(story.history()) == set()
    assert found(story.history(limited=limited(story, {**TWO, "concurrency": 3}))) == set()
    assert found(story.history(limited=limited(story, TWO))) == {13}


def test_who_starts_when_another_ends_is_not_with_it(story: Story) -> None:
    for _ in range(4):
        run_at_once(story, 2)
    assert found(story.history(limited=limited(story, TWO))) == set()


@pytest.mark.parametrize(("number", "since", "until", "is_bad"), [
    (3, 0.0, 0.0, False), (3, 0.0, 2000.0, False), (3, 1900.0, 2000.0, True),
    (None, 0.0, 0.0, True), (1, 0.0, 0.0, True),
])  # fmt: skip
def test_a_changed_number_holds_from_its_answer_on(
    story: Story, number: int | None, since: float, until: float, is_bad: bool
) -> None:
    run_at_once(story, 3)
    changes = (LimitChange("two", number, since, until),)
    history = story.history(limited=limited(story, TWO), limit_changes=changes)
    assert found(history) == ({13} if is_bad else set())


def test_a_lowered_limit_stops_nothing_that_runs(story: Story) -> None:
    run_at_once(story, 2)
    changes = (LimitChange("two", 1, story.now - 3.5, story.now - 3.4),)
    assert found(story.history(limited=limited(story, TWO), limit_changes=changes)) == set()


def test_a_body_must_not_outlive_the_place_of_its_lease(story: Story) -> None:
    for _ in range(3):
        run_at_once(story, 1)
    lines = [Line(*key, pid=1, at=key_at, text=text)
             for number, key in enumerate(story.leases)
             for key_at, text in ((10.0 + number, "start"), (20.0 + number, "end"))]  # fmt: skip
    history = story.history(limited=limited(story, TWO), lines=tuple(lines))
    assert 13 in found(history)
    apart = [line._replace(at=line.at + 100 * (number // 2)) for number, line in enumerate(lines)]
    assert found(replace(history, lines=tuple(apart))) == set()


def test_no_window_may_have_more_starts_than_the_rate(story: Story) -> None:
    for _ in range(3):
        run_at_once(story, 1)
    assert found(story.history(limited=limited(story, RATE))) == {13}
    assert found(story.history(limited=limited(story, {**RATE, "seconds": 7.0}))) == set()


def test_the_tasks_of_a_sequence_run_one_after_another(story: Story) -> None:
    for _ in range(3):
        run_at_once(story, 1)
    assert found(story.history(limited=limited(story, sequence="s"))) == set()
    run_at_once(story, 2)
    assert found(story.history(limited=limited(story, sequence="s"))) == {13}


def test_the_next_of_a_sequence_waits_for_a_retry(story: Story) -> None:
    first, second = story.enqueue(), story.enqueue()
    story.end(story.claim(first), "failed")
    lease = story.claim(second)
    story.end(lease, "succeeded")
    story.move(first, "ready")
    story.end(story.claim(first), "succeeded")
    assert found(story.history(limited=limited(story, sequence="s"))) == {13}


@pytest.mark.parametrize(
    "left",
    [
        {"left_of_limits": (LeftRow("notes", 1),)},
        {"left_of_limits": (LeftRow("slots of ended leases", 1),)},
        {"limit_repairs": 1},
    ],
)
def test_nothing_may_be_left_nor_repaired(story: Story, left: dict[str, Any]) -> None:
    assert found(story.history(left_of_limits=(LeftRow("notes", 0),))) == set()
    assert found(story.history(**left)) == {13}


# Waiting beside a place


def waits(story: Story, *, slots: int = 2, tags: Any = (), needs: Any = (), **more: Any) -> History:
    """One task waits for ten seconds, while another one of its limit runs."""
    running, waiting = story.enqueue(), story.enqueue()
    lease = story.claim(running)
    story.now += 10
    second = story.claim(waiting)
    story.end(second, "succeeded")
    story.end(lease, "succeeded")
    serving = (ServingRow("ada", slots, list(tags), 0.0, None),)
    rows = limited(story, TWO, tags=list(needs))
    return story.history(limited=rows, serving=serving, **more)


def test_a_task_must_not_wait_beside_a_place_and_a_slot(story: Story) -> None:
    assert found(waits(story)) == {13}


def test_a_task_may_wait_for_a_slot(story: Story) -> None:
    assert found(waits(story, slots=1)) == set()


def test_a_task_may_wait_for_a_worker_with_its_tags(story: Story) -> None:
    assert found(waits(story, needs=["gpu"])) == set()
    assert found(waits(Story(), needs=["gpu"], tags=["gpu"])) == {13}


def test_a_task_may_wait_for_a_place(story: Story) -> None:
    history = waits(story)
    one = tuple(row._replace(limits=[{**TWO, "concurrency": 1}]) for row in history.limited)
    lowered = (LimitChange("two", 1, 0.0, 0.0),)
    assert 13 in found(replace(history, limited=one)), "The second one may not start at all."
    assert "waited" not in str(found(replace(history, limit_changes=lowered)))


def test_a_task_may_wait_while_its_workers_are_frozen(story: Story) -> None:
    assert found(waits(story, faults=(Fault("freeze", 0.0, 1020.0, ("ada",)),))) == set()


@pytest.mark.parametrize(
    ("least", "since", "is_bad"), [(9.0, 1000.0, False), (1.0, 1000.0, True), (9.0, 980.0, True)]
)
def test_a_task_may_wait_while_every_worker_waits_for_a_processor(
    story: Story, least: float, since: float, is_bad: bool
) -> None:
    stalls = (Stall(since, since + 20, 0.0, ((7, 19.0), (8, 2 * least))),)
    assert found(waits(story, stalls=stalls)) == ({13} if is_bad else set())


def test_a_task_may_wait_while_the_database_is_away(story: Story) -> None:
    history = waits(story, faults=(Fault("outage", 1003.0, 1012.0),))
    assert 13 not in found(history)


def test_a_task_may_wait_while_those_are_served_that_came_before(story: Story) -> None:
    early = [story.enqueue() for _ in range(3)]
    waiting = story.enqueue()
    for task in early:
        story.end(story.claim(task), "succeeded")
    story.end(story.claim(waiting), "succeeded")
    serving = (ServingRow("ada", 2, [], 0.0, None),)
    assert found(story.history(limited=limited(story, TWO), serving=serving)) == set()
    later = story.enqueue()
    rest = [story.enqueue() for _ in range(4)]
    for task in rest:
        story.end(story.claim(task), "succeeded")
    story.end(story.claim(later), "succeeded")
    assert found(story.history(limited=limited(story, TWO), serving=serving)) == {13}


# Shares


def of_tenants(story: Story, order: str) -> History:
    """Tasks of the tenants `a` and `b`, all there from the beginning, start in this order."""
    tasks = {tenant: [story.enqueue() for _ in range(order.count(tenant))] for tenant in "ab"}
    tenant_of = {task: tenant for tenant, found in tasks.items() for task in found}
    for tenant in order:
        story.end(story.claim(tasks[tenant].pop()), "succeeded")
    rows = tuple(LimitedRow(id, "default", [], tenant=tenant_of[id]) for id in story.tasks)
    return story.history(limited=rows)


def test_a_tenant_must_not_start_many_tasks_more_than_another_one_that_waits(
    story: Story,
) -> None:
    assert found(of_tenants(story, "ab" * 80)) == set()
    assert found(of_tenants(Story(), "a" * 80)) == set(), "Nobody else waits."
    assert found(of_tenants(Story(), "a" * 80 + "b")) == {13}


def test_a_limit_of_a_queue_holds_for_what_is_claimed_after_it_was_set(story: Story) -> None:
    run_at_once(story, 3)
    limit = LimitChange("queue:default", 2, 0.0, 0.0)
    assert found(story.history(limit_changes=(limit,))) == {13}
    later = limit._replace(asked_at=story.now, answered_at=story.now)
    assert found(story.history(limit_changes=(later,))) == set()
    lifted = (limit, LimitChange("queue:default", None, 1.0, 1.0))
    assert found(story.history(limit_changes=lifted)) == set()
    assert found(story.history(limit_changes=(limit._replace(number=3),))) == set()
