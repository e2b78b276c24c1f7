"""Metrics of one worker's own process, for Prometheus, without database queries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from taskqueue.core import __version__
from taskqueue.core.histogram import cumulative
from taskqueue.worker.memory import memory_of
from taskqueue.worker.meter import Meter, Occupancy
from taskqueue.worker.ports import Answer


class MeterCollector(Collector):
    """The counters of a meter, under the names of Prometheus."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def collect(self) -> Iterable[Metric]:
        """All families."""
        meter, occupancy = self._meter, self._meter.occupancy()
        info = {"name": meter.name, "pool": meter.pool, "version": __version__}
        yield InfoMetricFamily("taskqueue_worker", "Which worker this is.", value=info)
        yield from _queues(meter)
        yield from _counters(meter)
        yield from _gauges(meter, occupancy)


def route(meter: Meter) -> Answer:
    """The route `/metrics`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MeterCollector(meter))
    return Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(registry))


def _queues(meter: Meter) -> Iterator[Metric]:
    attempts = CounterMetricFamily(
        "taskqueue_worker_attempts", "Attempts that ended here, by outcome.",
        labels=["queue", "outcome"],
    )  # fmt: skip
    runs = HistogramMetricFamily(
        "taskqueue_worker_run_seconds", "Run times of bodies that were not interrupted.",
        labels=["queue"],
    )  # fmt: skip
    waits = HistogramMetricFamily(
        "taskqueue_worker_wait_seconds", "From being ready to the start of the body.",
        labels=["queue"],
    )  # fmt: skip
    for name, queue in sorted(meter.queues.copy().items()):
        for outcome, number in queue.outcomes.items():
            attempts.add_metric([name, outcome], number)
        runs.add_metric([name], cumulative(queue.runs.counts()), queue.runs.seconds)
        waits.add_metric([name], cumulative(queue.waits.counts()), queue.waits.seconds)
    yield from (attempts, runs, waits)
    advances = HistogramMetricFamily(
        "taskqueue_worker_workflow_advance_seconds",
        "Counting ends that were recorded here, and moving their workflows on.",
    )
    advances.add_metric([], cumulative(meter.advances.counts()), meter.advances.seconds)
    yield advances


def _counters(meter: Meter) -> Iterator[Metric]:
    for name, number, help in (
        ("claims", meter.claims, "Claims that the database answered."),
        ("claimed_tasks", meter.claimed, "Tasks that were claimed."),
        ("children_started", meter.children_started, "Child processes that were started."),
        ("children_crashed", meter.children_crashed, "Child processes that crashed."),
        ("pings", meter.vitals.pings, "Pings that the database answered."),
        ("pings_failed", meter.vitals.pings_failed, "Pings that the database did not answer."),
    ):
        yield CounterMetricFamily(f"taskqueue_worker_{name}", help, value=number)


def _gauges(meter: Meter, occupancy: Occupancy) -> Iterator[Metric]:
    memory = memory_of([os.getpid(), *occupancy.pids])
    for name, number, help in (
        ("slots", occupancy.slots, "Tasks that it can run at once."),
        ("slots_busy", occupancy.busy, "Slots that run a task."),
        ("leases", occupancy.held, "Leases that it holds, prefetched tasks included."),
        ("children", len(occupancy.pids), "Child processes that are alive."),
        ("start_time_seconds", meter.began_at, "Start of its process, in seconds since 1970."),
        ("memory_bytes", memory, "Memory of it and its children; shared pages count for each."),
    ):
        if number is not None:
            yield GaugeMetricFamily(f"taskqueue_worker_{name}", help, value=number)
