"""Metrics with their types, labels and help texts, from their families."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.metrics_core import Metric

from docs.generate.markdown import code, table
from taskqueue.monitoring.metrics.collector import DatabaseCollector
from taskqueue.worker.meter import Meter
from taskqueue.worker.metrics import MeterCollector


def queue_metrics() -> str:
    """Return the metrics of the whole queue."""
    return _table(DatabaseCollector().collect())


def worker_metrics() -> str:
    """Return the metrics of one worker."""
    return _table(MeterCollector(Meter()).collect())


def _table(families: Iterable[Metric]) -> str:
    rows = []
    for each in families:
        labels = list(getattr(each, "_labelnames", ()))
        name = each.name + {"counter": "_total", "info": "_info"}.get(each.type, "")
        if each.type == "info":
            labels = sorted({label for sample in each.samples for label in sample.labels})
        rows.append((code(name), each.type, ", ".join(map(code, labels)), each.documentation))
    return table(["metric", "type", "labels", "meaning"], rows)
