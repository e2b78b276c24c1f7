"""Making families of metrics, and the samples of workflows."""

from __future__ import annotations

from typing import TypeVar

from prometheus_client.core import CounterMetricFamily as Counts
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily as Histogram
from prometheus_client.core import SummaryMetricFamily as Summary
from prometheus_client.metrics_core import Metric

from taskqueue.monitoring.metrics.workflows import ENDS, WorkflowFigures

M = TypeVar("M", Counts, Gauge, Histogram, Summary)


def family(kind: type[M], name: str, help: str, *labels: str) -> M:
    """Return a family without samples."""
    return kind(f"taskqueue_{name}", help, labels=labels)


def safe(value: str) -> str:
    """Return a label's value that can be encoded."""
    return value.encode("utf-8", "replace").decode()


def of_workflows(figures: WorkflowFigures) -> list[Metric]:
    """Return gauges and counters of the workflows."""
    open_ones = family(
        Gauge, "workflows", "Workflows that have not ended; a lower bound if"
        " workflows_capped is 1.", "name", "status",
    )  # fmt: skip
    capped = family(
        Gauge, "workflows_capped", "Whether the count reached its cap, so that there may be"
        " more workflows.", "status",
    )  # fmt: skip
    seconds = family(
        Summary, "workflow_seconds", "Times from the enqueue of workflows to their end, by status.",
        "name", "status",
    )  # fmt: skip
    repairs = family(
        Counts, "workflow_repairs", "Steps of workflows whose counts were wrong, and were"
        " corrected; 0 where all is well.",
    )  # fmt: skip
    waiting = family(
        Gauge, "step_ends_waiting", "Ends of tasks of workflows that are still to be counted, up to"
        " 10,000.",
    )  # fmt: skip
    for (name, status), number in sorted(figures.open.items()):
        open_ones.add_metric([safe(name), status], number)
    for status, is_capped in sorted(figures.capped.items()):
        capped.add_metric([status], is_capped)
    for (name, status), (number, total) in sorted(figures.ended.items()):
        if status in ENDS:
            seconds.add_metric([safe(name), status], number, total)
    repairs.add_metric([], figures.repairs)
    waiting.add_metric([], figures.notes)
    return [open_ones, capped, seconds, repairs, waiting]
