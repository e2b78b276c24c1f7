"""A job on its way through the worker."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome
from taskqueue.engine.rows import Claimed
from taskqueue.worker import children, pool
from taskqueue.worker.children import NEVER, ChildProcess
from taskqueue.worker.jobs import Job, Order
from taskqueue.worker.options import WorkerOptions
from taskqueue.worker.pending_writes import PendingWrites

CLAIMED = Claimed(
    lease_id=7, task_id="id", name="n", attempt=2, args="[1]", kwargs="{}", options="",
    metadata="", failures=3, max_attempts=1, crashes=0, lease_seconds=None, deadline_in=5.0,
    queue_name="q", ping_seconds=None, waited=1.5,
)  # fmt: skip


NOW = 1000.0


class Clock:
    """Stands still, however long the test takes."""

    def __init__(self) -> None:
        self.now = NOW

    def monotonic(self) -> float:
        return self.now


class Watchdog:
    """Keeps what it is told."""

    is_there = True

    def __init__(self) -> None:
        self.deadlines: dict[int, float] = {}
        self.on_told: Callable[[], None] = lambda: None

    def live_until(self, process: int, deadline: float) -> None:
        self.deadlines[process] = deadline
        self.on_told()

    def forget(self, process: int) -> None:
        self.deadlines.pop(process, None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (children, pool):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[ChildProcess]:
    """An idle one with a free slot, but for its process."""
    process = SimpleNamespace(pid=7, wait=lambda timeout=None: 0)
    popen = SimpleNamespace(Popen=lambda *args, **options: process, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(children, "subprocess", popen)
    child = ChildProcess(
        pool="process", slots=1, worker_name="w", max_memory=None, declares=False,
        watchdog=cast(Any, Watchdog()),
    )  # fmt: skip
    child.is_ready = True
    yield child
    child.socket.close()


def pool_with(child: ChildProcess, job: Job) -> pool.Pool:
    made = pool.Pool(WorkerOptions(), get_settings(), child._watchdog)
    made.children.append(child)
    made.add([job])
    return made


def test_a_job_whose_claim_was_answered_too_late_is_handed_back_not_out(
    child: ChildProcess,
) -> None:
    job = Job(CLAIMED, NOW - 6.1, usual_lease=10)
    pool = pool_with(child, job)
    pool.dispatch(NOW)
    assert child.held == {}
    assert [(each.lease_id, each.kind) for each in pool.pending.outcomes] == [(7, "unstarted")]

    job.renewed(NOW)
    pool.add([job])
    pool.dispatch(NOW)
    assert child.held == {7: job}


@pytest.mark.parametrize(
    ("before", "after"), [(NEVER, NOW + 4), (NOW + 100, NOW + 4), (NOW + 1,) * 2]
)
def test_a_child_lives_no_longer_than_is_safe_for_the_job_that_it_is_handed(
    child: ChildProcess, before: float, after: float
) -> None:
    watchdog = cast(Any, child._watchdog)
    child.deadline = watchdog.deadlines[7] = before
    pool_with(child, Job(CLAIMED, NOW - 2, usual_lease=10)).dispatch(NOW)
    assert child.deadline == watchdog.deadlines[7] == after


def test_a_worker_that_is_frozen_as_it_hands_a_job_out_keeps_it_from_the_child(
    child: ChildProcess, clock: Clock
) -> None:
    def freeze() -> None:
        clock.now += 3600

    watchdog = cast(Any, child._watchdog)
    watchdog.on_told = freeze
    pool = pool_with(child, Job(CLAIMED, NOW, usual_lease=10))
    pool.dispatch(NOW)
    assert watchdog.deadlines == {7: NOW + 6}, "the guardian ends the child meanwhile"
    assert child.held == {}
    assert [each.kind for each in pool.pending.outcomes] == ["unstarted"]


def test_near_its_deadline_a_child_is_bound_by_what_it_holds_now(
    child: ChildProcess, clock: Clock
) -> None:
    watchdog = cast(Any, child._watchdog)
    brief = CLAIMED._replace(lease_id=1, lease_seconds=4.0)
    pool = pool_with(child, Job(brief, NOW, usual_lease=100))
    pool.dispatch(NOW)
    assert (child.deadline, pool.next_deadline(NOW)) == (NOW + 2.4, NOW + 1.4)
    child.take_back(1, NOW)
    pool.add([Job(CLAIMED, NOW, usual_lease=100)])
    pool.dispatch(NOW)
    assert child.deadline == NOW + 2.4
    clock.now = NOW + 1.5
    pool.relax(clock.now)
    assert child.deadline == watchdog.deadlines[7] == NOW + 60
    child.take_back(7, clock.now)
    clock.now = NOW + 59.5
    pool.relax(clock.now)
    assert child.deadline == watchdog.deadlines[7] == NEVER
    assert pool.next_deadline(clock.now) == NEVER


def test_a_child_that_has_died_is_none_of_the_guardians(child: ChildProcess) -> None:
    child.held[7] = Job(CLAIMED, NOW, usual_lease=10)
    child.bury()
    child.pulse(NOW + 6)
    assert cast(Any, child._watchdog).deadlines == {}


def test_what_a_child_gave_back_has_not_started(child: ChildProcess) -> None:
    job = Job(CLAIMED, NOW, usual_lease=10)
    pool = pool_with(child, job)
    pool.dispatch(NOW)
    assert job.started_at is not None
    pool._recalled(child, [7], NOW)
    assert (job.started_at, job.limit_at) == (None, None)


def test_an_order_holds_what_was_claimed_under_the_same_names() -> None:
    order = Order._make(Job(CLAIMED, 100.0).order)
    shared = [field for field in Order._fields if field in Claimed._fields]
    assert len(shared) == 11
    assert [getattr(order, field) for field in shared] == [
        getattr(CLAIMED, field) for field in shared
    ]
    assert order.deadline_at == 105.0
    assert order.ready_at == 98.5


def test_outcomes_are_handed_out_with_ages_and_put_back_with_moments() -> None:
    pending = PendingWrites()
    outcome = Outcome(1, "failed", error_message="m", delay=2.0, started=90.0, ended=95.0)
    pending.outcomes.append(outcome)
    taken = pending.take_outcomes(100.0)
    assert taken == [outcome._replace(started=10.0, ended=5.0)]
    assert pending.outcomes == []
    pending.put_back(taken, [], [], 100.0)
    assert pending.outcomes == [outcome]
    unstarted = Outcome(2, "unstarted", ended=99.0)
    pending.outcomes = [unstarted]
    assert pending.take_outcomes(100.0)[0].started is None
