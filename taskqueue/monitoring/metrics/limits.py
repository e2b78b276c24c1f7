"""Metrics of limits and pauses: by limit, not by key, because there may be any number of keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily as Counts
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.metrics_core import Metric

from taskqueue.engine.totals import MOST_LABELS
from taskqueue.models.limit import PartitionState
from taskqueue.monitoring.metrics.families import family, safe
from taskqueue.monitoring.metrics.workflows import WorkflowFigures
from taskqueue.monitoring.read_models.limit import ShownLimit
from taskqueue.monitoring.read_models.worker import ShownWorker


def of_limits(limits: Iterable[ShownLimit], figures: WorkflowFigures) -> list[Metric]:
    """Return gauges of the limits."""
    running = family(
        Gauge,
        "limit_running",
        "Leases that hold a place of a limit, summed over its keys.",
        "limit",
    )
    slots = family(
        Gauge, "limit_slots", "Places of a limit, for each of its keys; none for a rate.", "limit"
    )
    waiting = family(
        Gauge, "limit_waiting", "Ready tasks that wait for a place or a token of a limit, counted"
        " up to a cap.", "limit",
    )  # fmt: skip
    used = family(
        Gauge, "rate_used_ratio", "Used share of a rate, for the key that has used most.",
        "limit",
    )  # fmt: skip
    saturated = family(
        Counts, "limit_saturated_seconds", "Seconds in which tasks waited for a place of a limit,"
        " sampled every ten seconds.", "limit",
    )  # fmt: skip
    for limit in limits:
        label = safe(limit.name)
        running.add_metric([label], limit.running)
        waiting.add_metric([label], limit.waiting)
        if limit.concurrency is not None:
            slots.add_metric([label], limit.concurrency)
            saturated.add_metric([label], figures.saturated.get(limit.name, 0.0))
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
    repairs = family(
        Counts, "partition_repairs", "Stuck partitions with tasks and free places that were"
        " opened; 0 in normal operation.",
    )  # fmt: skip
    repairs.add_metric([], figures.limit_repairs)
    return [running, slots, waiting, used, saturated, notes, partitions, repairs]


def of_calls(figures: WorkflowFigures) -> list[Metric]:
    """Return the counts of calls that were turned away or that replaced another task."""
    turned_away = family(
        Counts, "calls_turned_away", "Calls that a debounce, a throttle or a capacity merged,"
        " dropped or refused, or for which it cancelled a task.", "name", "outcome",
    )  # fmt: skip
    for (name, what), (number, _) in sorted(figures.turned_away.items()):
        turned_away.add_metric([safe(name), what], number)
    return [turned_away]


def of_pauses(figures: WorkflowFigures) -> list[Metric]:
    """Return gauges of the pauses of definitions and of everything."""
    everything = family(Gauge, "paused", "Whether everything is paused.")
    everything.add_metric([], figures.pauses.get("everything", 0))
    definitions = family(Gauge, "definitions_paused", "Definitions that are paused.")
    definitions.add_metric([], figures.pauses.get("definition", 0))
    return [everything, definitions]


def of_slots(workers: Iterable[ShownWorker]) -> list[Metric]:
    """Return gauges of the slots that queues and definitions may use."""
    queues, definitions = Counter[str](), Counter[str]()
    for worker in workers:
        queues.update(worker.queue_slots)
        definitions.update(worker.definition_slots)
    of_queues = family(
        Gauge, "queue_slots", "Slots that a queue may have at most, of the running workers that"
        " limit it.", "queue",
    )  # fmt: skip
    of_definitions = family(
        Gauge, "definition_slots", "Slots that a definition may have at most, of the running"
        " workers that limit it.", "name",
    )  # fmt: skip
    for gauge, slots in ((of_queues, queues), (of_definitions, definitions)):
        for name, number in slots.most_common(MOST_LABELS):
            gauge.add_metric([safe(name)], number)
    return [of_queues, of_definitions]
