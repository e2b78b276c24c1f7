"""The metrics of limits: by limit, never by key, of which there may be any number."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.metrics_core import Metric

from taskqueue.models.limit import PartitionState
from taskqueue.monitoring.metrics.families import family, safe
from taskqueue.monitoring.metrics.workflows import WorkflowFigures
from taskqueue.monitoring.read_models.limit import ShownLimit


def of_limits(limits: Iterable[ShownLimit], figures: WorkflowFigures) -> list[Metric]:
    """Return gauges of the limits."""
    running = family(
        Gauge, "limit_running", "Leases that take a place of a limit, of all its keys.", "limit"
    )
    slots = family(
        Gauge, "limit_slots", "Places of a limit, of each of its keys; none for a rate.", "limit"
    )
    waiting = family(
        Gauge, "limit_waiting", "Ready tasks that wait for a place or a token of a limit, counted"
        " up to a cap.", "limit",
    )  # fmt: skip
    used = family(
        Gauge, "rate_used_ratio", "How much of a rate is used, of the key that has used most.",
        "limit",
    )  # fmt: skip
    for limit in limits:
        label = safe(limit.name)
        running.add_metric([label], limit.running)
        waiting.add_metric([label], limit.waiting)
        if limit.concurrency is not None:
            slots.add_metric([label], limit.concurrency)
        if limit.used_ratio is not None:
            used.add_metric([label], limit.used_ratio)
    notes = family(
        Gauge, "partition_notes", "Notes of new work and free places that no worker has read yet."
    )
    notes.add_metric([], figures.limit_notes)
    partitions = family(
        Gauge, "partitions", "Partitions of limited tasks by state, counted up to 10,000.", "state"
    )
    for state in PartitionState:
        partitions.add_metric([state.value], figures.partitions.get(state.value, 0))
    return [running, slots, waiting, used, notes, partitions]
