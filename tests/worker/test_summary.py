"""The line in which a worker sums up a minute; time is an argument, so none passes here."""

from __future__ import annotations

import logging

import pytest

from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.worker.meter import INTERVAL, Meter, Occupancy, Summary
from tests.worker.test_meter import SUCCEEDED, ended, job


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    texts = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return texts


def test_a_minute_is_summed_up_where_something_ended(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "taskqueue.worker")
    meter = Meter()
    meter.begin("paris", "process", lambda: Occupancy(busy=3))
    summary = Summary(meter, 0.0)
    outcomes: list[tuple[Outcome, Recorded]] = [
        (ended(OutcomeKind.SUCCEEDED), SUCCEEDED),
        (ended(OutcomeKind.FAILED), Recorded("retrying", "failed")),
        (ended(OutcomeKind.FAILED), Recorded("failed", "failed")),
        (ended(OutcomeKind.STOPPED), Recorded("cancelled", "stopped")),
    ]
    for outcome, recorded in outcomes:
        meter.recorded(job(), outcome, recorded)
    meter.recorded(job("mail"), ended(OutcomeKind.SUCCEEDED), SUCCEEDED)

    summary.step(INTERVAL - 1)
    assert said(caplog) == []
    summary.step(INTERVAL + 1)
    counts = "succeeded=2 failed=1 retried=1 other=1"
    assert said(caplog) == [f"Attempts ended in_seconds=61 {counts} running=3"]
    summary.step(2 * INTERVAL + 1)
    assert said(caplog) == []
    meter.recorded(job(), ended(OutcomeKind.SUCCEEDED), SUCCEEDED)
    summary.step(3 * INTERVAL + 1)
    assert said(caplog) == [
        "Attempts ended in_seconds=60 succeeded=1 failed=0 retried=0 other=0 running=3"
    ]
    summary.end("paris")
    assert said(caplog) == ["Worker stopped name=paris succeeded=3 failed=1 retried=1 other=1"]
