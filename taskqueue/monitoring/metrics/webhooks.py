"""The metrics of webhooks: by state, never by endpoint, for a URL is not everybody's to see."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.metrics_core import Metric

from taskqueue.monitoring.metrics.families import family
from taskqueue.monitoring.metrics.workflows import WorkflowFigures

STATES = ("active", "failing", "disabled")


def of_webhooks(figures: WorkflowFigures) -> list[Metric]:
    """Return gauges of endpoints and of the deliveries that wait."""
    numbers = family(
        Gauge, "webhook_endpoints", "Endpoints of webhooks by state; one that fails has had no"
        " success since its first failure.", "state",
    )  # fmt: skip
    for state in STATES:
        numbers.add_metric([state], figures.endpoints.get(state, 0))
    waiting = family(
        Gauge, "webhook_deliveries_waiting", "Deliveries of webhooks that wait to be sent, or sent"
        " again, counted up to 10,000.",
    )  # fmt: skip
    waiting.add_metric([], figures.deliveries)
    return [numbers, waiting]
