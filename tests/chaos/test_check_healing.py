"""Takeovers and workers that the checker must object to: invariants 8 and 15."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.history import Fault, Stall, Term
from tests.chaos.lock_probe import beside
from tests.chaos.story import Story, found


def taken_over(story: Story, *, after: float) -> tuple[tuple[str, int], float]:
    """Take a task over, that many seconds after its lease expired. Return the lease, and when."""
    task = story.enqueue()
    lease = story.claim(task)
    expires_at = story.leases[lease].expires_at
    story.now = expires_at + after
    story.lose(lease)
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    return lease, expires_at


# 8


def test_a_takeover_must_not_come_late(story: Story) -> None:
    task = story.enqueue()
    lease = story.claim(task)
    story.now += 30
    story.lose(lease)
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {8}
    outage = Fault("database", story.leases[lease].claimed_at, story.now - 8)
    assert found(story.history(faults=(outage,))) == set()


def test_an_outage_soon_after_an_outage_lets_nobody_take_over_in_between(story: Story) -> None:
    task = story.enqueue()
    lease = story.claim(task)
    began = story.leases[lease].claimed_at
    story.now += 30
    story.lose(lease)
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    first = Fault("database", began, began + 8)
    grace = began + 8 + story.bounds.lease
    second = Fault("database", grace + 1, story.now - 8)
    assert found(story.history(faults=(first,))) == {8}
    assert found(story.history(faults=(first, second))) == set()


def test_a_lease_that_ran_out_must_be_taken_over(story: Story) -> None:
    story.claim(story.enqueue())
    story.now += 30
    assert found(story.history()) == {1, 8}


def test_a_task_must_end_soon_after_the_last_fault(story: Story) -> None:
    task = story.enqueue()
    story.faults.append(Fault("kill", story.now, story.now, ("ada",)))
    lease = story.claim(task)
    story.leases[lease] = story.leases[lease]._replace(expires_at=story.now + 50)
    story.now += 20
    story.end(lease, "succeeded")
    assert found(story.history(bounds=replace(story.bounds, healing=10.0))) == {8}
    assert found(story.history(bounds=replace(story.bounds, healing=30.0))) == set()


# 15


def test_a_worker_must_not_claim_after_it_was_asked_to_end(story: Story) -> None:
    term = Term("ada", story.now, story.now + 4)
    story.end(story.claim(story.enqueue()), "succeeded")
    assert found(story.history(terms=(term,))) == {15}
    assert found(story.history(terms=(term._replace(worker_name="bob"),))) == set()


def test_a_claim_that_left_no_trace_counts_too(story: Story) -> None:
    term = Term("ada", story.now, story.now + 4)
    task = story.enqueue()
    story.end(story.claim(task), "succeeded")
    lease = story.leases.pop((task, 1))
    history = story.history(terms=(term,))
    assert 15 in found(history)
    assert lease.worker_name == "ada"


def test_a_worker_that_was_asked_to_end_must_end(story: Story) -> None:
    story.now += 60
    assert found(story.history(terms=(Term("ada", 1000.0, None),))) == {15}


# What the machine keeps from all


def test_a_stall_of_the_machine_excuses_a_late_takeover(story: Story) -> None:
    _, expires_at = taken_over(story, after=10)
    took = story.now - expires_at
    assert found(story.history()) == {8}
    for stall, expected in (
        (Stall(expires_at, story.now, took), set()),
        (Stall(expires_at, story.now, 1.0), {8}),
        (Stall(expires_at - 20, expires_at, 20.0), {8}),
        (Stall(story.now, story.now + 20, 20.0), {8}),
    ):
        assert found(story.history(stalls=(stall,))) == expected


def test_a_stall_that_lets_a_worker_begin_its_looks_anew_costs_all_of_these(story: Story) -> None:
    allowed = story.bounds.takeover_interval + story.bounds.slack
    lease, expires_at = taken_over(story, after=allowed + 0.2)
    sqlite = replace(story.bounds, looks_again=True)
    at_once = Stall(expires_at + 1, expires_at + 1.7, 0.4)
    before = at_once._replace(since=expires_at - 3, until=expires_at - 2.3)
    spread = at_once._replace(until=story.now)
    assert found(story.history(stalls=(at_once,))) == {8}, "Elsewhere one look is enough."
    for stall, expected in ((at_once, set()), (before, {8}), (spread, {8})):
        assert found(story.history(bounds=sqlite, stalls=(stall,))) == expected
    for_long = story.leases[lease]._replace(expires_at=expires_at - 1)
    story.leases[lease] = for_long
    assert found(story.history(bounds=sqlite, stalls=(at_once,))) == {8}, "It excuses no more."


def test_who_was_kept_from_seeing_that_it_was_told_may_claim_meanwhile(story: Story) -> None:
    told_at = story.now
    task = story.enqueue()
    story.end(story.claim(task), "succeeded")
    story.terms.append(Term("ada", told_at, story.now))
    assert found(story.history()) == {15}
    assert found(story.history(stalls=(Stall(told_at, told_at + 2, 0.5),))) == {15}
    assert found(story.history(stalls=(Stall(told_at, told_at + 2, 2.0),))) == set()


def test_a_wait_for_the_write_lock_excuses_a_takeover_and_nothing_else(story: Story) -> None:
    """Less what the machine kept from everybody meanwhile, which counts by itself."""
    _, expires_at = taken_over(story, after=10)
    sqlite = replace(story.bounds, looks_again=True)
    wait = Stall(expires_at, story.now, story.now - expires_at)
    assert found(story.history(lock_waits=(wait,))) == {8}, "Elsewhere nobody needs that lock."
    assert found(story.history(bounds=sqlite)) == {8}
    assert found(story.history(bounds=sqlite, lock_waits=(wait,))) == set()
    short = Stall(expires_at, expires_at + 0.5, 0.5)
    assert found(story.history(bounds=sqlite, lock_waits=(short,))) == {8}
    assert beside([short], [short]) == [short._replace(seconds=0.0)]
    assert beside([wait], [short])[0].seconds == pytest.approx(0.0)
    told_at = story.now
    story.end(story.claim(story.enqueue()), "succeeded")
    story.terms.append(Term("ada", told_at, story.now))
    later = wait._replace(since=told_at, until=told_at + 2, seconds=2.0)
    assert found(story.history(bounds=sqlite, lock_waits=(wait, later))) == {15}
