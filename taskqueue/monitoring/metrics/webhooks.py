"""The metrics of webhooks: by state, never by endpoint, for a URL is not everybody's to see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.metrics_core import Metric

from taskqueue.monitoring.metrics.families import family
from taskqueue.monitoring.read_models.webhook import ShownEndpoint

STATES = ("active", "failing", "disabled")


def of_webhooks(endpoints: Iterable[ShownEndpoint]) -> list[Metric]:
    """Return gauges of endpoints and of the deliveries that wait."""
    found = list(endpoints)
    states = Counter(endpoint.state for endpoint in found)
    numbers = family(
        Gauge, "webhook_endpoints", "Endpoints of webhooks by state; one that fails has had no"
        " success since its first failure.", "state",
    )  # fmt: skip
    for state in STATES:
        numbers.add_metric([state], states[state])
    waiting = family(
        Gauge, "webhook_deliveries_waiting", "Deliveries of webhooks that wait to be sent, or sent"
        " again; of each endpoint counted up to a cap.",
    )  # fmt: skip
    waiting.add_metric([], sum(endpoint.waiting for endpoint in found))
    return [numbers, waiting]
