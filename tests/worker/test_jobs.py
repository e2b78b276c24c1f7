"""A job on its way through the worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast

from taskqueue.conf import get_settings
from taskqueue.engine.rows import Claimed
from taskqueue.outcomes import Outcome
from taskqueue.worker.findings import Findings
from taskqueue.worker.jobs import Job, Order
from taskqueue.worker.options import WorkerOptions
from taskqueue.worker.pool import Pool

CLAIMED = Claimed(
    lease_id=7, task_id="id", name="n", attempt=2, args="[1]", kwargs="{}", options="",
    metadata="", failures=3, crashes=0, lease_seconds=None, deadline_in=5.0, queue_name="q",
    ping_seconds=None, waited=1.5,
)  # fmt: skip


class IdleChild:
    """A child with a free slot, that takes what it is given."""

    takes_orders, free_slots, slots, started, stuck = True, 1, 1, 0, ()

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.held: dict[int, Job] = {}
        self.given: list[Job] = []

    def running(self) -> Iterator[Job]:
        return iter(())

    def pulse(self, deadline: float) -> None:
        self.deadline = deadline

    def send_orders(self, jobs: list[Job], now: float) -> None:
        self.given += jobs


def pool_with(child: IdleChild, job: Job) -> Pool:
    pool = Pool(WorkerOptions(), get_settings(), cast(Any, None))
    pool.children.append(cast(Any, child))
    pool.add([job])
    return pool


def test_a_job_whose_claim_was_answered_too_late_is_handed_back_not_out() -> None:
    now = time.monotonic()
    job = Job(CLAIMED, now - 6.1, usual_lease=10)
    child = IdleChild(now + 100)
    pool = pool_with(child, job)
    pool.dispatch(now)
    assert child.given == []
    assert [(each.lease_id, each.kind) for each in pool.findings.outcomes] == [(7, "unstarted")]

    job.renewed(now)
    pool.add([job])
    pool.dispatch(now)
    assert child.given == [job]


def test_a_child_lives_no_longer_than_is_safe_for_the_job_that_it_is_handed() -> None:
    now = time.monotonic()
    child = IdleChild(now + 100)
    pool_with(child, Job(CLAIMED, now - 2, usual_lease=10)).dispatch(now)
    assert child.deadline == now + 4
    child = IdleChild(now + 1)
    pool_with(child, Job(CLAIMED, now - 2, usual_lease=10)).dispatch(now)
    assert child.deadline == now + 1


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
