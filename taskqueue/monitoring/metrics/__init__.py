"""What Prometheus reads: figures of the whole queue, from its database."""

from taskqueue.monitoring.metrics.exposition import exposition

__all__ = ["exposition"]
