"""A job on its way through the worker."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from taskqueue.conf import get_settings
from taskqueue.engine.rows import Claimed
from taskqueue.outcomes import Outcome
from taskqueue.worker import children, pool
from taskqueue.worker.children import NEVER, ChildProcess
from taskqueue.worker.findings import Findings
from taskqueue.worker.jobs import Job, Order
from taskqueue.worker.options import WorkerOptions

CLAIMED = Claimed(
    lease_id=7, task_id="id", name="n", attempt=2, args="[1]", kwargs="{}", options="",
    metadata="", failures=3, crashes=0, lease_seconds=None, deadline_in=5.0, queue_name="q",
    ping_seconds=None, waited=1.5,
)  # fmt: skip


NOW = 1000.0


class Clock:
    """Stands still, however long the test takes."""

    def monotonic(self) -> float:
        return NOW


class Watchdog:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.deadlines: dict[int, float] = {}

    def live_until(self, process: int, deadline: float) -> None:
        self.deadlines[process] = deadline


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildProcess]:
    """An idle one with a free slot, but for its process."""
    for module in (children, pool):
        monkeypatch.setattr(module, "time", Clock())
    process = SimpleNamespace(pid=7)
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
    made = pool.Pool(WorkerOptions(), get_settings(), cast(Any, None))
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
    assert [(each.lease_id, each.kind) for each in pool.findings.outcomes] == [(7, "unstarted")]

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


def test_an_order_holds_what_was_claimed_under_the_same_names() -> None:
    order = Order._make(Job(CLAIMED, 100.0).order)
    shared = [field for field in Order._fields if field in Claimed._fields]
    assert len(shared) == 10
    assert [getattr(order, field) for field in shared] == [
        getattr(CLAIMED, field) for field in shared
    ]
    assert order.deadline_at == 105.0
    assert order.ready_at == 98.5


def test_outcomes_are_handed_out_with_ages_and_put_back_with_moments() -> None:
    findings = Findings()
    outcome = Outcome(1, "failed", error_message="m", delay=2.0, started=90.0, ended=95.0)
    findings.outcomes.append(outcome)
    taken = findings.take_outcomes(100.0)
    assert taken == [outcome._replace(started=10.0, ended=5.0)]
    assert findings.outcomes == []
    findings.put_back(taken, [], [], 100.0)
    assert findings.outcomes == [outcome]
    unstarted = Outcome(2, "unstarted", ended=99.0)
    findings.outcomes = [unstarted]
    assert findings.take_outcomes(100.0)[0].started is None
