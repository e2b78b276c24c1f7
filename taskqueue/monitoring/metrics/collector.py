"""The collector: reads the database, and gives what Prometheus makes its samples of."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError
from django.db.transaction import atomic
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from taskqueue.engine.connections import project_connection
from taskqueue.engine.totals import DEFAULT
from taskqueue.monitoring.fleet import worker_figures
from taskqueue.monitoring.metrics import families
from taskqueue.monitoring.metrics.counters import counters
from taskqueue.monitoring.metrics.gauges import sizes, timetables
from taskqueue.monitoring.metrics.standing import lanes

logger = logging.getLogger("taskqueue.metrics")

MOST_WORKERS = 1_000
LONGEST_STATEMENT = "5s"
"""Nobody waits for an answer for longer than that, and the next scrape asks again."""


class DatabaseCollector(Collector):
    """Figures of the whole queue; the same from whichever process they are asked."""

    def collect(self) -> Iterable[Metric]:
        """All families, or that the database does not answer."""
        began = time.perf_counter()
        try:
            with _bounded():
                found = list(_families())
        except (DatabaseError, InterfaceError) as error:
            logger.warning("Metrics could not be read error=%s", error)
            found = []
        up = GaugeMetricFamily("taskqueue_up", "Whether the queue's database could be read.")
        up.add_metric([], 1.0 if found else 0.0)
        took = GaugeMetricFamily(
            "taskqueue_scrape_duration_seconds", "How long it took to read these figures."
        )
        took.add_metric([], time.perf_counter() - began)
        return [up, took, *found]


def _families() -> Iterator[Metric]:
    workers = worker_figures(limit=MOST_WORKERS)
    # Also of those that are gone: one label more does no harm, but to take back what stands there.
    meant = frozenset({DEFAULT}).union(*(worker.queues for worker in workers))
    counted = counters(meant)
    yield from families.of_lanes(lanes(counted.queues.keys(), workers))
    yield from families.of_queues(counted.queues)
    yield from families.of_names(counted.names)
    yield from families.of_workers(workers)
    yield from families.of_schedules(timetables())
    yield from families.of_tables(sizes())


@contextmanager
def _bounded() -> Iterator[None]:
    """A limit to each statement, but within a caller's transaction, which would keep it."""
    connection = project_connection()
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        yield
        return
    with atomic(using=connection.alias):
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [LONGEST_STATEMENT])
        yield
