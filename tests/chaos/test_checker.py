"""The checker finds nothing in a correct history, and each error by its invariant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chaos.checker import INVARIANTS, Evidence, check, figures
from tests.chaos.checker.figures import quantile
from tests.chaos.history import EffectRow, Enqueue, Fault
from tests.chaos.story import KEYED, Story, found


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
        Enqueue(
            sequence=90, state="ok", unique_key="k", unique_scope="work", task_ids=(holder,),
            created=False,
        )
    )  # fmt: skip
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
    assert set(INVARIANTS) == {*range(1, 11), *range(12, 19)}


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


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.integers(1, 100))
def test_a_quantile_is_not_exceeded_by_its_share(values: list[int], percent: int) -> None:
    ordered, share = sorted(values), percent / 100
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
    max_size=30,
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
