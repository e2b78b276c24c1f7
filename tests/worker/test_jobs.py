"""A job on its way through the worker."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome
from taskqueue.engine.rows import Claimed, Note
from taskqueue.worker import children, dispatch, frames
from taskqueue.worker import watchdog as watchdog_module
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.children import ChildProcess
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.jobs import Job
from taskqueue.worker.leases import PendingWrites
from taskqueue.worker.meter import Meter
from taskqueue.worker.outcomes import aged, all_aged
from taskqueue.worker.pool import Pool
from taskqueue.worker.receiving import Receiver
from taskqueue.worker.state import WorkerOptions, WorkerState
from taskqueue.worker.watchdog import NEVER

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
    for module in (children, watchdog_module, dispatch):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def watchdog() -> Watchdog:
    return Watchdog()


@pytest.fixture
def child(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, watchdog: Watchdog
) -> Iterator[ChildProcess]:
    """An idle one with a free slot, but for its process."""
    process = SimpleNamespace(pid=7, wait=lambda timeout=None: 0)
    popen = SimpleNamespace(Popen=lambda *args, **options: process, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(children, "subprocess", popen)
    child = ChildProcess(
        WorkerOptions(name="w"), slots=1, declares=False, watchdog=cast(Any, watchdog)
    )
    child.is_ready = True
    yield child
    child.socket.close()


@pytest.fixture
def dispatcher(child: ChildProcess, watchdog: Watchdog) -> Dispatcher:
    """With one child."""
    state = WorkerState(WorkerOptions(), get_settings(), Meter(), lambda: None)
    pool = Pool(state, cast(Any, watchdog))
    pool.children.append(child)
    return Dispatcher(state, pool)


def test_a_job_whose_claim_was_answered_too_late_is_handed_back_not_out(
    child: ChildProcess, dispatcher: Dispatcher
) -> None:
    job = Job(CLAIMED, NOW - 6.1, usual_lease=10)
    dispatcher.add([job])
    dispatcher.dispatch(NOW)
    assert child.held == {}
    outcomes = dispatcher.pending.outcomes
    assert [(outcome.lease_id, outcome.kind) for outcome in outcomes] == [(7, "unstarted")]

    job.renewed(NOW)
    dispatcher.add([job])
    dispatcher.dispatch(NOW)
    assert child.held == {7: job}


@pytest.mark.parametrize(
    ("before", "after"), [(NEVER, NOW + 4), (NOW + 100, NOW + 4), (NOW + 1,) * 2]
)
def test_a_child_lives_no_longer_than_is_safe_for_the_job_that_it_is_handed(
    child: ChildProcess,
    dispatcher: Dispatcher,
    watchdog: Watchdog,
    before: float,
    after: float,
) -> None:
    child.deadline.at = watchdog.deadlines[7] = before
    dispatcher.add([Job(CLAIMED, NOW - 2, usual_lease=10)])
    dispatcher.dispatch(NOW)
    assert child.deadline.at == watchdog.deadlines[7] == after


def test_a_worker_that_is_frozen_as_it_hands_a_job_out_keeps_it_from_the_child(
    child: ChildProcess, dispatcher: Dispatcher, watchdog: Watchdog, clock: Clock
) -> None:
    def freeze() -> None:
        clock.now += 3600

    watchdog.on_told = freeze
    dispatcher.add([Job(CLAIMED, NOW, usual_lease=10)])
    dispatcher.dispatch(NOW)
    assert watchdog.deadlines == {7: NOW + 6}, "the guardian ends the child meanwhile"
    assert child.held == {}
    assert [outcome.kind for outcome in dispatcher.pending.outcomes] == ["unstarted"]


def test_near_its_deadline_a_child_is_bound_by_what_it_holds_now(
    child: ChildProcess, dispatcher: Dispatcher, watchdog: Watchdog, clock: Clock
) -> None:
    pool, brief = dispatcher.pool, CLAIMED._replace(lease_id=1, lease_seconds=4.0)
    dispatcher.add([Job(brief, NOW, usual_lease=100)])
    dispatcher.dispatch(NOW)
    assert (child.deadline.at, pool.next_deadline(NOW)) == (NOW + 2.4, NOW + 1.4)
    child.take_back(1, NOW)
    dispatcher.add([Job(CLAIMED, NOW, usual_lease=100)])
    dispatcher.dispatch(NOW)
    assert child.deadline.at == NOW + 2.4
    clock.now = NOW + 1.5
    pool.relax(clock.now)
    assert child.deadline.at == watchdog.deadlines[7] == NOW + 60
    child.take_back(7, clock.now)
    clock.now = NOW + 59.5
    pool.relax(clock.now)
    assert child.deadline.at == watchdog.deadlines[7] == NEVER
    assert pool.next_deadline(clock.now) == NEVER


def test_a_child_that_has_died_is_none_of_the_guardians(
    child: ChildProcess, watchdog: Watchdog
) -> None:
    child.held[7] = Job(CLAIMED, NOW, usual_lease=10)
    child.bury()
    child.deadline.extend(NOW + 6)
    assert watchdog.deadlines == {}


def test_a_task_that_a_child_returned_has_not_started(
    child: ChildProcess, dispatcher: Dispatcher
) -> None:
    job = Job(CLAIMED, NOW, usual_lease=10)
    dispatcher.add([job])
    dispatcher.dispatch(NOW)
    assert job.started_at is not None
    Receiver(dispatcher)._take_in(child, (frames.RECALLED, [7]), NOW)
    assert (job.started_at, job.limit_at) == (None, None)


def test_an_order_holds_what_was_claimed_under_the_same_names() -> None:
    order = Order._make(Job(CLAIMED, 100.0).order)
    shared = [field for field in Order._fields if field in Claimed._fields]
    assert len(shared) == 12
    assert [getattr(order, field) for field in shared] == [
        getattr(CLAIMED, field) for field in shared
    ]
    assert order.deadline_at == 105.0
    assert order.ready_at == 98.5


def test_outcomes_reach_the_database_with_ages() -> None:
    outcome = Outcome(1, "failed", error_message="m", delay=2.0, started=90.0, ended=95.0)
    assert aged(outcome, 100.0) == outcome._replace(started=10.0, ended=5.0)
    assert aged(Outcome(2, "unstarted", ended=99.0), 100.0).started is None


def test_many_outcomes_get_the_ages_that_each_of_them_would() -> None:
    outcomes = [
        Outcome(1, "failed", error_message="m", delay=2.0, started=90.0, ended=95.0),
        Outcome(2, "unstarted", ended=99.0),
        Outcome(3, "succeeded", started=90.0, ended=91.0, return_value="1", updates="{}"),
    ]
    assert all_aged(outcomes, 100.0) == [aged(outcome, 100.0) for outcome in outcomes]
    assert all_aged([], 100.0) == []


def test_successes_that_arrive_together_are_taken_in_like_one_after_the_other(
    child: ChildProcess, dispatcher: Dispatcher
) -> None:
    jobs = [Job(CLAIMED._replace(lease_id=number), NOW, usual_lease=100) for number in range(1, 7)]
    dispatcher.prefetch._seconds = 0.0
    dispatcher.add(jobs)
    dispatcher.dispatch(NOW)
    assert list(child.held) == [1, 2, 3, 4, 5, 6]
    jobs[1].stop_reason = "Asked to stop."
    jobs[2].is_over = True
    child.leave_stuck(1)

    rows = [(0, number, NOW + number, NOW) for number in (1, 2, 3, 4, 99)]
    Receiver(dispatcher)._take_in(child, (frames.SUCCEEDED, rows), NOW)

    assert [
        (outcome.lease_id, outcome.kind, outcome.ended, outcome.started)
        for outcome in dispatcher.pending.outcomes
    ] == [
        (1, "succeeded", NOW + 1, NOW),
        (2, "stopped", NOW + 2, NOW),
        (4, "succeeded", NOW + 4, NOW),
    ]
    assert not child.stuck
    assert [job.lease_id for job in child.running()] == [5]
    assert [job.lease_id for job in child.waiting()] == [6]


def test_outcomes_that_could_not_be_written_go_first_the_next_time() -> None:
    pending = PendingWrites()
    taken, later = Outcome(1, "failed", ended=95.0), Outcome(2, "failed", ended=96.0)
    pending.outcomes, pending.progress[1] = [later], (20.0, "newer", None)
    notes = [Note(1, None, 10.0, "older"), Note(2, None, 30.0, None)]
    pending.put_back([taken], [], notes)
    assert pending.outcomes == [taken, later]
    assert pending.progress == {1: (20.0, "newer", None), 2: (30.0, "", None)}
