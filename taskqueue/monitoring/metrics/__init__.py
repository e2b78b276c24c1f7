"""What Prometheus reads: figures of the whole queue, from its database.

Needs the extra `metrics`, and imports it only where a page is asked for.
"""

from taskqueue.monitoring.metrics.page import exposition

__all__ = ["exposition"]
