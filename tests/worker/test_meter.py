"""Counts of a worker about itself, and the page that shows them; without a process."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Any

import pytest
from django.core.management.base import CommandError

from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.engine import totals
from taskqueue.management.commands.runworker import add_port_flags
from taskqueue.management.working import open_ports
from taskqueue.worker.jobs import Job
from taskqueue.worker.meter import Meter, Occupancy
from taskqueue.worker.metrics import route
from tests.conftest import require_tool
from tests.monitoring.metrics.scraping import Samples, read, total, value
from tests.worker.test_jobs import CLAIMED


def job(queue_name: str = "default", *, waited: float | None = 3.0) -> Job:
    """Claimed at 100."""
    return Job(CLAIMED._replace(queue_name=queue_name, waited=waited), 100.0)


def ended(kind: OutcomeKind, **times: Any) -> Outcome:
    """A body that ran from 101 to 105."""
    return Outcome(1, kind, **{"started": 101.0, "ended": 105.0, **times})


SUCCEEDED = Recorded("succeeded", "succeeded")


def page(meter: Meter) -> Samples:
    return read(route(meter).body)


def test_attempts_count_by_queue_and_by_what_they_came_to() -> None:
    meter = Meter()
    meter.recorded(job(), ended(OutcomeKind.SUCCEEDED), SUCCEEDED)
    meter.recorded(job(), ended(OutcomeKind.RETRY_LATER), Recorded("retrying", "failed"))
    meter.recorded(job(), ended(OutcomeKind.SUCCEEDED), Recorded("cancelled", "stopped"))
    meter.recorded(
        job("mail"),
        ended(OutcomeKind.LOST, started=None),
        Recorded("retrying", "lost"),
    )
    meter.recorded(
        job("mail"),
        ended(OutcomeKind.UNSTARTED, started=None),
        Recorded("ready", None),
    )
    itself = ended(OutcomeKind.SUCCEEDED, ended=101.5)
    meter.recorded(job("mail", waited=None), itself, SUCCEEDED)
    samples = page(meter)
    counted = {
        (dict(labels)["queue"], dict(labels)["outcome"]): number
        for (name, labels), number in samples.items()
        if name == "taskqueue_worker_attempts_total" and number
    }
    assert counted == {
        ("default", "succeeded"): 1, ("default", "failed"): 1, ("default", "stopped"): 1,
        ("mail", "lost"): 1, ("mail", "succeeded"): 1,
    }  # fmt: skip
    assert value(samples, "worker_run_seconds_count", queue="default") == 3
    assert value(samples, "worker_run_seconds_sum", queue="default") == 12
    # Claimed at 100, ready since 97, started at 101.
    assert value(samples, "worker_wait_seconds_sum", queue="default") == 12
    assert value(samples, "worker_wait_seconds_bucket", queue="default", le="4.0") == 3
    assert value(samples, "worker_wait_seconds_bucket", queue="default", le="2.0") == 0
    assert value(samples, "worker_run_seconds_count", queue="mail") == 1
    assert value(samples, "worker_wait_seconds_count", queue="mail") == 0


def test_the_rest_is_told_as_it_stands() -> None:
    meter = Meter()
    assert value(page(meter), "worker_slots") == 0, "not registered yet"
    meter.begin("w1", "process", lambda: Occupancy(slots=4, busy=2, held=3, pids=(os.getpid(),)))
    meter.claimed_batch(3)
    meter.claimed_batch(0)
    meter.children_started, meter.children_crashed = 5, 1
    meter.vitals.renewed(0.0)
    meter.vitals.failed()
    samples = page(meter)
    assert total(samples, "worker_info", name="w1", pool="process") == 1
    shown = ("claims_total", "claimed_tasks_total", "children_started_total", "pings_total")
    assert [value(samples, f"worker_{name}") for name in shown] == [2, 3, 5, 1]
    assert value(samples, "worker_children_crashed_total") == 1
    assert value(samples, "worker_pings_failed_total") == 1
    stand = ("slots", "slots_busy", "leases", "children")
    assert [value(samples, f"worker_{name}") for name in stand] == [4, 2, 3, 1]
    if sys.platform == "linux":
        assert value(samples, "worker_memory_bytes") > 1_000_000


def test_queues_are_told_in_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "MOST_LABELS", 2)
    meter = Meter()
    for number in (0, 1, 2, 3, 3, 0):
        meter.recorded(
            job(f"q{number}"),
            ended(OutcomeKind.SUCCEEDED),
            Recorded("succeeded", "succeeded"),
        )
    found = {queue: each.outcomes["succeeded"] for queue, each in meter.queues.items()}
    assert found == {"q0": 2, "q1": 1, "…other": 3}
    meter.begin("w1", "process", Occupancy, named=["mail"])
    meter.recorded(job("mail"), ended(OutcomeKind.SUCCEEDED), SUCCEEDED)
    assert meter.queues["mail"].outcomes["succeeded"] == 1, "whatever came before"


def test_promtool_has_nothing_to_object_to() -> None:
    promtool = require_tool("promtool")
    meter = Meter()
    meter.recorded(job(), ended(OutcomeKind.SUCCEEDED), SUCCEEDED)
    found = subprocess.run(
        [promtool, "check", "metrics"], input=route(meter).body, capture_output=True, timeout=30
    )
    assert (found.returncode, found.stdout + found.stderr) == (0, b"")


def flags(*arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_port_flags(parser)
    return vars(parser.parse_args(arguments))


def test_a_flag_of_its_own_opens_the_port_which_may_be_that_of_the_probes() -> None:
    with open_ports(flags(), Meter()) as none:
        assert none == []
    both = flags("--metrics-port", "0", "--health-port", "0")
    with open_ports(both, Meter()) as shared:
        [address] = shared
        assert address.host == "127.0.0.1"


def test_without_prometheus_client_the_worker_refuses_to_begin_and_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "taskqueue.worker.metrics", raising=False)
    with (
        pytest.raises(CommandError, match=r"django-taskqueue\[metrics\]"),
        open_ports(flags("--metrics-port", "0"), Meter()),
    ):
        pass
    with open_ports(flags("--health-port", "0"), Meter()) as ports:
        assert len(ports) == 1, "probes need no extra"
