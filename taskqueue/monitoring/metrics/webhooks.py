"""Metrics of events and webhooks; not by endpoint, because not everybody may see a URL."""

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
    failed = family(
        Gauge, "webhook_deliveries_failed", "Deliveries of webhooks that have failed, as long as"
        " they are kept, counted up to 10,000.",
    )  # fmt: skip
    failed.add_metric([], figures.failed_deliveries)
    return [numbers, waiting, failed]


def of_events(figures: WorkflowFigures) -> list[Metric]:
    """Return gauges of the events that no worker has numbered yet."""
    new = family(
        Gauge, "events_unnumbered", "Events without a number, which are not delivered yet,"
        " counted up to 10,000.",
    )  # fmt: skip
    new.add_metric([], figures.new_events)
    lag = family(
        Gauge, "events_lag_seconds", "Age of the oldest event that waits for its number; 0 if none"
        " does.",
    )  # fmt: skip
    lag.add_metric([], figures.event_lag)
    return [new, lag]
