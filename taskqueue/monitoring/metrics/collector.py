"""The metrics of the whole queue: names, help texts and samples, and their collector.

Names and units follow https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from django.db import DatabaseError, InterfaceError
from prometheus_client.core import CounterMetricFamily as Counts
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily as Histogram
from prometheus_client.core import SummaryMetricFamily as Summary
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from taskqueue.core.histogram import cumulative
from taskqueue.engine.connections import project_connection
from taskqueue.engine.totals import DEFAULT
from taskqueue.monitoring.metrics.families import family, of_workflows, safe
from taskqueue.monitoring.metrics.figures import (
    ENDS,
    OUTCOMES,
    Counters,
    Lane,
    Timetable,
    counters,
    lanes,
    timetables,
)
from taskqueue.monitoring.metrics.limits import of_calls, of_limits, of_pauses, of_slots
from taskqueue.monitoring.metrics.webhooks import of_events, of_webhooks
from taskqueue.monitoring.metrics.workflows import workflow_figures
from taskqueue.monitoring.notice import ERROR, WARNING
from taskqueue.monitoring.notice_texts import TEXTS
from taskqueue.monitoring.notices import Notice, Situation, notices
from taskqueue.monitoring.notices.standing import Examined
from taskqueue.monitoring.read_models.alert import firing_by_rule
from taskqueue.monitoring.read_models.limit import read_limits
from taskqueue.monitoring.read_models.worker import STATES, ShownWorker, living
from taskqueue.monitoring.reading import NoAnswer, SharedQuestion, is_postgresql, time_limit


def of_lanes(lanes: Mapping[str, Lane]) -> list[Metric]:
    """Return gauges of the queues."""
    tasks = family(
        Gauge, "tasks", "Tasks that have not ended; a lower bound if tasks_capped is 1.",
        "queue", "status",
    )  # fmt: skip
    capped = family(
        Gauge, "tasks_capped", "Whether the count reached its cap, so that there may be"
        " more tasks.", "queue", "status",
    )  # fmt: skip
    latency = family(
        Gauge, "queue_latency_seconds", "Waiting time of the oldest ready task;"
        " 0 if none waits. Without tasks for named workers that are not running.", "queue",
    )  # fmt: skip
    absent = family(
        Gauge, "queue_absent_latency_seconds", "The same for ready tasks for named workers, none of"
        " which is running.", "queue",
    )  # fmt: skip
    paused = family(Gauge, "queue_paused", "Whether the queue is paused.", "queue")
    workers = family(Gauge, "queue_workers", "Workers that serve the queue.", "queue")
    for queue, lane in sorted(lanes.items()):
        label = safe(queue)
        for status, number in lane.tasks.items():
            tasks.add_metric([label, status], number)
            capped.add_metric([label, status], status in lane.capped)
        latency.add_metric([label], max(0.0, lane.oldest_seconds))
        absent.add_metric([label], max(0.0, lane.absent_seconds))
        paused.add_metric([label], lane.is_paused)
        workers.add_metric([label], lane.workers)
    return [tasks, capped, latency, absent, paused, workers]


def of_queues(queues: Counters) -> list[Metric]:
    """Return counters by queue."""
    enqueued = family(Counts, "tasks_enqueued", "Tasks that were created.", "queue")
    finished = family(
        Counts, "tasks_finished", "Ends of tasks by status; a task that is retried manually ends"
        " again.", "queue", "status",
    )  # fmt: skip
    attempts = family(Counts, "attempts", "Attempts that ended, by outcome.", "queue", "outcome")
    lost = family(
        Counts, "leases_lost", "Attempts whose worker or child died, or sent no heartbeat in time.",
        "queue",
    )  # fmt: skip
    runs = family(
        Histogram, "attempt_run_seconds", "Run times of attempts that ended by themselves.", "queue"
    )
    waits = family(
        Histogram, "attempt_wait_seconds", "Wait times, from being ready to the start.", "queue"
    )
    for queue, counted in sorted(queues.items()):
        label, sums = safe(queue), counted.sums
        enqueued.add_metric([label], sums["enqueued"])
        for status in ENDS:
            finished.add_metric([label, status], sums[f"tasks_{status}"])
        for outcome in OUTCOMES:
            attempts.add_metric([label, outcome], sums[outcome])
        lost.add_metric([label], sums["lost"])
        runs.add_metric([label], cumulative(counted.run_times), sums["run_seconds"])
        waits.add_metric([label], cumulative(counted.wait_times), sums["wait_seconds"])
    return [enqueued, finished, attempts, lost, runs, waits]


def of_names(names: Counters) -> list[Metric]:
    """Return counters by task name."""
    attempts = family(
        Counts, "name_attempts", "Attempts that ended, by task name and outcome.", "name", "outcome"
    )
    runs = family(Summary, "name_run_seconds", "Run times of attempts, by task name.", "name")
    for name, counted in sorted(names.items()):
        label, sums = safe(name), counted.sums
        for outcome in OUTCOMES:
            attempts.add_metric([label, outcome], sums[outcome])
        runs.add_metric([label], sum(counted.run_times.values()), sums["run_seconds"])
    return [attempts, runs]


def of_workers(workers: Sequence[ShownWorker]) -> list[Metric]:
    """Return gauges of the workers."""
    states = family(
        Gauge, "workers", "Workers by state; stopped workers are forgotten after a while.", "state"
    )
    number = Counter(worker.state for worker in workers)
    for state in STATES.values():
        states.add_metric([state], number[state])
    alive = living(workers)
    slots = family(Gauge, "slots", "Slots of the running workers.")
    slots.add_metric([], sum(worker.slots for worker in alive))
    busy = family(Gauge, "slots_busy", "Slots of the running workers that are in use.")
    busy.add_metric([], sum(worker.busy for worker in alive))
    return [states, slots, busy]


def of_schedules(timetables: Mapping[str, Timetable]) -> list[Metric]:
    """Return gauges of the schedules."""
    last = family(
        Gauge, "schedule_last_run_timestamp_seconds",
        "Nominal time of the last run that was enqueued.", "schedule",
    )  # fmt: skip
    upcoming = family(
        Gauge, "schedule_next_run_timestamp_seconds",
        "Nominal time of the next run; none while paused or disabled.", "schedule",
    )  # fmt: skip
    for schedule, times in sorted(timetables.items()):
        for gauge, moment in zip((last, upcoming), times, strict=True):
            if moment is not None:
                gauge.add_metric([safe(schedule)], moment.timestamp())
    return [last, upcoming]


def of_alerts(firing: Sequence[tuple[str, int]]) -> list[Metric]:
    """Return the gauge of the alert rules."""
    alerts = family(Gauge, "alerts_firing", "Alerts of a rule that are firing.", "rule")
    for rule, number in firing:
        alerts.add_metric([safe(rule)], number)
    return [alerts]


def of_examinations(examined: Examined | None) -> list[Metric]:
    """Return when a worker last ran the doctor; no sample if none did."""
    last_run = family(
        Gauge, "doctor_last_run_timestamp_seconds",
        "When a worker last ran the doctor, whose findings are among the notices.",
    )  # fmt: skip
    if examined is not None:
        last_run.add_metric([], examined.at.timestamp())
    return [last_run]


def of_notices(found: Sequence[Notice]) -> list[Metric]:
    """Return the gauge of the notices; every kind has a sample of each level, so none vanishes."""
    notices = family(
        Gauge, "notices", "Conditions that need attention, as the dashboard shows them.", "kind",
        "level",
    )  # fmt: skip
    number = Counter((notice.code, notice.level) for notice in found)
    for code, level in product(sorted(TEXTS), (ERROR, WARNING)):
        notices.add_metric([code, level], number[code, level])
    return [notices]


def of_tables(sizes: Mapping[str, int]) -> list[Metric]:
    """Return the sizes of the tables."""
    bytes_of = family(Gauge, "table_size_bytes", "Size of a table with its indexes.", "table")
    for table, size in sorted(sizes.items()):
        bytes_of.add_metric([table], size)
    return [bytes_of]


logger = logging.getLogger("taskqueue.metrics")

MOST_LIMITS = 200
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
        up = family(Gauge, "up", "Whether the queue's database could be read.")
        up.add_metric([], 1.0 if found else 0.0)
        took = family(Gauge, "scrape_duration_seconds", "Time to read these metrics.")
        took.add_metric([], time.perf_counter() - began)
        return [up, took, *found]


def _found() -> list[Metric]:
    """Return all families. Raises `NoAnswer` if the database does not answer.

    SQLite always answers, and only the caller's transaction sees what it has written.
    """
    if not is_postgresql() or project_connection().in_atomic_block:
        return list(_families())
    return shared_scrape.answer(seconds=LONGEST)


def _bounded_families() -> list[Metric]:
    with time_limit(project_connection(), LONGEST_STATEMENT):
        return list(_families())


shared_scrape = SharedQuestion(_bounded_families)


def _families() -> Iterator[Metric]:
    situation = Situation()
    workers = situation.workers
    # Including workers that are gone: a further label does no harm, but removing one would.
    meant = frozenset({DEFAULT}).union(*(worker.queues for worker in workers))
    queues, names = counters(meant)
    yield from of_lanes(lanes(queues.keys(), workers, situation.queue_rows))
    yield from of_queues(queues)
    yield from of_names(names)
    yield from of_workers(workers)
    yield from of_schedules(timetables())
    figures = workflow_figures()
    yield from of_limits(read_limits(limit=MOST_LIMITS), figures)
    yield from of_calls(figures)
    yield from of_pauses(figures)
    yield from of_slots(living(workers))
    yield from of_workflows(figures)
    yield from of_alerts(firing_by_rule())
    yield from of_notices(notices(situation))
    yield from of_examinations(situation.standing.examined)
    yield from of_webhooks(figures)
    yield from of_events(figures)
    yield from of_tables(figures.sizes)
