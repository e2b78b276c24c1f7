"""A job on its way through the worker."""

from __future__ import annotations

from taskqueue.engine.rows import Claimed
from taskqueue.outcomes import Outcome
from taskqueue.worker.findings import Findings
from taskqueue.worker.jobs import Job, Order


def test_an_order_holds_what_was_claimed_under_the_same_names() -> None:
    claimed = Claimed(
        lease_id=7, task_id="id", name="n", attempt=2, args="[1]", kwargs="{}", options="",
        metadata="", failures=3, crashes=1, lease_seconds=None, deadline_in=5.0, queue_name="q",
    )  # fmt: skip
    order = Order._make(Job(claimed, 100.0).order)
    shared = [field for field in Order._fields if field in Claimed._fields]
    assert len(shared) == 9
    assert [getattr(order, field) for field in shared] == [
        getattr(claimed, field) for field in shared
    ]
    assert order.deadline_at == 105.0


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
