"""The checker finds nothing in an honest history, and each lie by its invariant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chaos.checker import INVARIANTS, Evidence, check, figures
from tests.chaos.checker.figures import quantile
from tests.chaos.history import Change, EffectRow, Enqueue, Fault, Line, Sample, Term
from tests.chaos.story import Story

KEYED: dict[str, Any] = {"unique_key": "k", "holds_unique_key": True, "unique_for": "finished"}


def found(history: Any) -> set[int]:
    """The numbers of the invariants that a history breaks."""
    return {violation.invariant for violation in check(history)}


@pytest.fixture
def story() -> Story:
    return Story()


def rich_story() -> Story:
    """One in which everything happens that may."""
    story = Story()
    plain, atomic, stopped = story.enqueue(), story.enqueue(is_atomic=True), story.enqueue()
    shared = story.enqueue(workers=2)
    first = story.claim(plain)
    story.run(first)
    story.lose(first)
    story.move(plain, "ready")
    again = story.claim(plain, "bob")
    story.run(again)
    story.end(again, "failed")
    story.move(plain, "ready")
    story.end(story.claim(plain), "returned")
    story.end(story.claim(plain), "succeeded")
    story.end(story.claim(atomic), "succeeded")
    story.effects.append(EffectRow(atomic, 1, ""))
    running = story.claim(stopped)
    story.see_stop(running)
    story.end(running, "stopped")
    ada, bob = story.claim(shared, "ada"), story.claim(shared, "bob")
    story.end(ada, "succeeded")
    story.end(bob, "failed")
    story.end(story.claim(shared, "bob"), "succeeded")
    gone = story.enqueue()
    story.end(story.claim(gone), "succeeded")
    story.prune(gone)
    holder = story.enqueue(**KEYED)
    story.enqueues.append(
        Enqueue(sequence=90, state="ok", unique_key="k", task_ids=(holder,), created=False)
    )
    story.end(story.claim(holder), "succeeded")
    next_holder = story.enqueue(**KEYED)
    story.end(story.claim(next_holder), "failed", "failed")
    story.retry_by_hand(next_holder)
    story.end(story.claim(next_holder), "succeeded")
    story.enqueues += [Enqueue(sequence=98, state="failed"), Enqueue(sequence=99, state="unknown")]
    return story


def test_an_honest_history_is_clean() -> None:
    assert check(rich_story().history()) == []


def test_an_honest_history_is_clean_without_triggers() -> None:
    story = rich_story()
    pruned = next(id for e in story.enqueues for id in e.task_ids if id not in story.tasks)
    enqueues = tuple(e for e in story.enqueues if pruned not in e.task_ids)
    assert check(story.history(changes=(), has_changes=False, enqueues=enqueues)) == []


def test_each_invariant_that_a_history_can_show_is_asked() -> None:
    assert set(INVARIANTS) == {*range(1, 11), 14, 15, 16, 17}


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
def test_what_was_not_enqueued_must_not_be_there(
    story: Story, enqueues: tuple[Enqueue, ...]
) -> None:
    story.end(story.claim(story.enqueue()), "succeeded")
    assert 2 in found(story.history(enqueues=enqueues))


def test_what_was_never_there_must_not_run(story: Story) -> None:
    assert found(story.history(effects=(EffectRow("none", 1, ""),))) == {2}
    assert found(story.history(lines=(Line("none", 1, 1, 1.0, "start"),))) == {2}


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


# 6


@pytest.mark.parametrize("attempts", [[], [2, 2], [1, 2], [1]])
def test_an_atomic_task_has_one_effect_of_its_success(story: Story, attempts: list[int]) -> None:
    task = story.enqueue(is_atomic=True)
    story.end(story.claim(task), "failed")
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    effects = tuple(EffectRow(task, attempt, "") for attempt in attempts)
    assert found(story.history(effects=effects)) == {6}
    assert found(story.history(effects=(EffectRow(task, 2, ""),))) == set()


def test_an_atomic_task_that_failed_has_no_effect(story: Story) -> None:
    task = story.enqueue(is_atomic=True)
    story.end(story.claim(task), "failed", "failed")
    assert found(story.history(effects=(EffectRow(task, 1, ""),))) == {6}
    assert found(story.history()) == set()


def test_the_effect_of_a_pruned_atomic_task_counts_too(story: Story) -> None:
    task = story.enqueue(is_atomic=True)
    story.end(story.claim(task), "succeeded")
    story.prune(task)
    assert found(story.history()) == {6}
    assert found(story.history(effects=(EffectRow(task, 1, ""),))) == set()


# 7


def test_only_transitions_of_the_table_happen(story: Story) -> None:
    task = story.enqueue()
    story.move(task, "retrying")
    story.move(task, "cancelled")
    assert found(story.history()) == {7}


def test_only_an_audited_retry_leaves_an_end(story: Story) -> None:
    task = story.enqueue()
    story.end(story.claim(task), "failed", "failed")
    story.retry_by_hand(task)
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == set()
    assert 7 in found(story.history(audits=()))


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


# 9


def test_a_task_must_not_fail_more_often_than_it_may(story: Story) -> None:
    task = story.enqueue(max_attempts=2)
    for _ in range(3):
        story.end(story.claim(task), "failed")
        story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {9}
    leases = tuple(
        lease._replace(error_class="taskqueue.exceptions.RetryLater")
        for lease in story.leases.values()
    )
    assert found(story.history(leases=leases)) == set()


def test_a_task_must_not_crash_more_often_than_it_may(story: Story) -> None:
    task = story.enqueue(max_crashes=2)
    for _ in range(3):
        story.end(story.claim(task), "lost")
        story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {9}


@pytest.mark.parametrize("column", ["failures", "crashes"])
def test_failures_and_crashes_are_counted(story: Story, column: str) -> None:
    task = story.enqueue()
    story.end(story.claim(task), {"failures": "failed", "crashes": "lost"}[column])
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == set()
    story.tasks[task] = story.tasks[task]._replace(**{column: 0})
    assert found(story.history()) == {9}


# 10


def test_two_tasks_must_not_hold_one_key(story: Story) -> None:
    for _ in range(2):
        task = story.enqueue(**KEYED)
        story.end(story.claim(task), "succeeded")
    assert found(story.history()) == set()
    first, second = story.enqueue(**KEYED), story.enqueue(**KEYED)
    story.end(story.claim(first), "succeeded")
    story.end(story.claim(second), "succeeded")
    assert found(story.history()) == {10}


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


def test_who_loses_the_race_gets_the_holder(story: Story) -> None:
    story.end(story.claim(story.enqueue()), "succeeded")
    answer = Enqueue(sequence=9, state="ok", unique_key="k", task_ids=("task-1",), created=False)
    assert found(story.history(enqueues=(*story.enqueues, answer))) == {10}


# 14


def test_an_attempt_must_not_succeed_once_its_stop_was_seen(story: Story) -> None:
    lease = story.claim(story.enqueue())
    story.see_stop(lease)
    story.end(lease, "succeeded")
    assert found(story.history()) == {14}


def test_a_stopped_task_must_not_run_again(story: Story) -> None:
    task = story.enqueue()
    lease = story.claim(task)
    story.see_stop(lease)
    story.end(lease, "lost")
    story.move(task, "ready")
    story.end(story.claim(task), "succeeded")
    assert found(story.history()) == {14}


def test_a_stop_ends_within_its_grace(story: Story) -> None:
    lease = story.claim(story.enqueue())
    story.see_stop(lease)
    story.now += 10
    story.end(lease, "stopped")
    assert found(story.history()) == {14}


# 15


def test_a_worker_claims_nothing_after_it_was_told_to_end(story: Story) -> None:
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


def test_a_worker_that_was_told_to_end_does(story: Story) -> None:
    story.now += 60
    assert found(story.history(terms=(Term("ada", 1000.0, None),))) == {15}


# 16


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


# 17


def test_counts_and_what_was_pruned_make_up_what_was_enqueued(story: Story) -> None:
    story.samples.append(Sample(1.0, {"ready": 2, "running": 1}, enqueued=4, pruned=1))
    assert found(story.history()) == set()
    story.samples.append(Sample(2.0, {"ready": 2}, enqueued=4, pruned=1))
    assert found(story.history()) == {17}


def test_what_was_made_is_there_or_was_pruned(story: Story) -> None:
    task = story.enqueue()
    story.end(story.claim(task), "succeeded")
    del story.tasks[task]
    assert 17 in found(story.history())


# Figures


def test_figures_of_a_run() -> None:
    story = rich_story()
    evidence = Evidence(story.history())
    result = figures(evidence, check(story.history()))
    assert (result.tasks, result.lost, result.doubled, result.stale_writes) == (7, 0, 0, 0)
    assert result.takeovers == 1
    assert result.takeover_p50 is not None
    assert 6 <= result.takeover_p50 <= 8


def test_an_outage_does_not_count_as_latency(story: Story) -> None:
    task = story.enqueue()
    lease = story.claim(task)
    story.now += 30
    story.lose(lease)
    outage = Fault("database", story.leases[lease].claimed_at, story.now - 3)
    latency = figures(Evidence(story.history(faults=(outage,))), []).takeover_p99
    assert latency == pytest.approx(3)


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_not_exceeded_by_its_share(values: list[float], share: float) -> None:
    ordered = sorted(values)
    result = quantile(ordered, share)
    assert result in ordered
    assert sum(value <= result for value in ordered) >= share * len(ordered) - 1e-9
    assert sum(value < result for value in ordered) < share * len(ordered) + 1e-9


# Whatever the order


STEPS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(["succeeded", "failed", "lost", "returned", "stopped", "run out"]),
        st.sampled_from(["ada", "bob", "eve"]),
    ),
    max_size=60,
)


def told(steps: list[tuple[int, str, str]]) -> Story:
    """An honest story of some tasks, whose claims and ends come in this order."""
    story = Story()
    tasks = [story.enqueue(max_attempts=99, max_crashes=99) for _ in range(6)]
    held: dict[str, tuple[str, int]] = {}
    for number, end, worker in [*steps, *((n, "succeeded", "ada") for n in [*range(6)] * 2)]:
        task = tasks[number]
        if task in held:
            lease = held.pop(task)
            if end == "run out" and story.leases[lease].expires_at >= story.now - 2:
                story.lose(lease)
            else:
                story.end(lease, "lost" if end == "run out" else end)
        elif story.tasks[task].status == "retrying":
            story.move(task, "ready")
            held[task] = story.claim(task, worker)
        elif story.tasks[task].status == "ready":
            held[task] = story.claim(task, worker)
        for lease in held.values():  # Everybody pings.
            row = story.leases[lease]
            story.leases[lease] = row._replace(expires_at=story.now + 6)
    return story


@settings(max_examples=40)
@given(STEPS)
def test_no_honest_order_of_events_is_a_violation(steps: list[tuple[int, str, str]]) -> None:
    story = told(steps)
    assert check(story.history(is_over=False)) == []


@settings(max_examples=40)
@given(STEPS, st.data())
def test_a_stale_success_is_found_wherever_it_happens(
    steps: list[tuple[int, str, str]], data: st.DataObject
) -> None:
    story = told(steps)
    ended = [lease for lease, row in story.leases.items() if row.status in ("failed", "lost")]
    if not ended:
        return
    lease = data.draw(st.sampled_from(ended))
    story.leases[lease] = story.leases[lease]._replace(status="succeeded")
    story.tasks[lease[0]] = story.tasks[lease[0]]._replace(status="succeeded")
    is_last = lease[1] == story.tasks[lease[0]].attempt
    history = story.history(is_over=False)
    rows_only = replace(history, changes=(), has_changes=False)
    assert found(history) & {5, 9}
    assert is_last or found(rows_only) & {3, 5, 9}
