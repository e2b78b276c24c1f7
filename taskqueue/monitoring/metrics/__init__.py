"""Metrics of the whole queue for Prometheus, from its database.

This needs the extra `metrics`, and imports it only when a page is requested.
"""

from django.core.exceptions import ImproperlyConfigured

__all__ = ["exposition"]


MISSING = (
    "Metrics need the package prometheus-client, which is not installed. Install it with"
    " 'django-taskqueue[metrics]'."
)


def exposition(accept: str = "") -> tuple[bytes, str]:
    """Return the metrics of the whole queue as a page, with its content type.

    `accept` is the request's header of that name: OpenMetrics if it asks for that, otherwise
    Prometheus's own text format. If the database does not answer, the page says so. Raises
    `ImproperlyConfigured` if the extra `metrics` is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import choose_encoder
    except ImportError as error:
        raise ImproperlyConfigured(MISSING) from error
    from taskqueue.monitoring.metrics.collector import DatabaseCollector

    registry = CollectorRegistry(auto_describe=False)
    registry.register(DatabaseCollector())
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
