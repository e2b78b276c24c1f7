"""The collector, which reads metrics of the whole queue from its database."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator

from django.db import DatabaseError, InterfaceError
from django.db.transaction import atomic
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from taskqueue.engine.connections import project_connection
from taskqueue.engine.totals import DEFAULT
from taskqueue.monitoring.bounded import NoAnswer, SharedQuestion
from taskqueue.monitoring.metrics import families
from taskqueue.monitoring.metrics.counters import counters
from taskqueue.monitoring.metrics.gauges import lanes, sizes, timetables
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.reading import is_postgresql

logger = logging.getLogger("taskqueue.metrics")

MOST_WORKERS = 1_000
# The limit of a statement; the next scrape tries again.
LONGEST_STATEMENT = "5s"
# Seconds for a scrape, including the connect: Prometheus gives up after ten.
LONGEST = 8.0


class DatabaseCollector(Collector):
    """Collects metrics of the whole queue, the same in every process."""

    def collect(self) -> Iterable[Metric]:
        """Return all families, or only that the database does not answer."""
        began = time.perf_counter()
        try:
            found = _found()
        except (DatabaseError, InterfaceError, OSError, NoAnswer) as error:
            logger.warning("Metrics could not be read error=%s", error)
            found = []
        up = GaugeMetricFamily("taskqueue_up", "Whether the queue's database could be read.")
        up.add_metric([], 1.0 if found else 0.0)
        took = GaugeMetricFamily("taskqueue_scrape_duration_seconds", "Time to read these metrics.")
        took.add_metric([], time.perf_counter() - began)
        return [up, took, *found]


def _found() -> list[Metric]:
    """Return all families. Raises `NoAnswer` where the database does not answer.

    SQLite always answers; and only a caller's transaction sees what it has written.
    """
    if not is_postgresql() or project_connection().in_atomic_block:
        return list(_families())
    return shared_scrape.answer(seconds=LONGEST)


def _bounded_families() -> list[Metric]:
    connection = project_connection()
    with atomic(using=connection.alias):
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [LONGEST_STATEMENT])
        return list(_families())


shared_scrape = SharedQuestion(_bounded_families)


def _families() -> Iterator[Metric]:
    workers = read_workers(limit=MOST_WORKERS)
    # Also of those that are gone: one label more does no harm, but to take back what stands there.
    meant = frozenset({DEFAULT}).union(*(worker.queues for worker in workers))
    counted = counters(meant)
    yield from families.of_lanes(lanes(counted.queues.keys(), workers))
    yield from families.of_queues(counted.queues)
    yield from families.of_names(counted.names)
    yield from families.of_workers(workers)
    yield from families.of_schedules(timetables())
    yield from families.of_tables(sizes())
