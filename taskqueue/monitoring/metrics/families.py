"""The metrics of the whole queue: their names, help texts and samples.

Names and units follow https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.metrics_core import Metric

from taskqueue.core.histogram import cumulative
from taskqueue.monitoring.metrics.counters import ENDS, OUTCOMES, Counted
from taskqueue.monitoring.metrics.gauges import Lane, Timetable
from taskqueue.monitoring.read_models.worker import STATES, ShownWorker, living


def of_lanes(lanes: Mapping[str, Lane]) -> Iterator[Metric]:
    """Yield gauges of the queues."""
    tasks = _gauge(
        "tasks", "Tasks that have not ended; at least so many where tasks_capped is 1.",
        "queue", "status",
    )  # fmt: skip
    capped = _gauge(
        "tasks_capped", "Whether counting stopped: there may be more tasks than taskqueue_tasks"
        " says.", "queue", "status",
    )  # fmt: skip
    latency = _gauge(
        "queue_latency_seconds", "Waiting time of the oldest ready task;"
        " 0 if none waits. Without tasks for named workers that are not running.", "queue",
    )  # fmt: skip
    absent = _gauge(
        "queue_absent_latency_seconds", "The same for ready tasks for named workers, none of"
        " which is running.", "queue",
    )  # fmt: skip
    paused = _gauge("queue_paused", "Whether the queue is paused.", "queue")
    workers = _gauge("queue_workers", "Workers that serve the queue.", "queue")
    for queue, lane in sorted(lanes.items()):
        for status, number in lane.tasks.items():
            tasks.add_metric(_safe(queue, status), number)
            capped.add_metric(_safe(queue, status), status in lane.capped)
        latency.add_metric(_safe(queue), max(0.0, lane.oldest_seconds))
        absent.add_metric(_safe(queue), max(0.0, lane.absent_seconds))
        paused.add_metric(_safe(queue), lane.is_paused)
        workers.add_metric(_safe(queue), lane.workers)
    yield from (tasks, capped, latency, absent, paused, workers)


def of_queues(queues: Mapping[str, Counted]) -> Iterator[Metric]:
    """Yield counters by queue."""
    enqueued = _counter("tasks_enqueued", "Tasks that were created.", "queue")
    finished = _counter(
        "tasks_finished", "Ends of tasks by status; a task that is retried manually ends again.",
        "queue", "status",
    )  # fmt: skip
    attempts = _counter("attempts", "Attempts that ended, by outcome.", "queue", "outcome")
    lost = _counter(
        "leases_lost", "Attempts whose worker or child died, or sent no heartbeat in time.", "queue"
    )
    runs = _histogram(
        "attempt_run_seconds", "Run times of attempts that ended by themselves.", "queue"
    )
    waits = _histogram(
        "attempt_wait_seconds", "Wait times, from being ready to the start.", "queue"
    )
    for queue, counted in sorted(queues.items()):
        labels = _safe(queue)
        enqueued.add_metric(labels, counted.enqueued)
        for status, number in zip(ENDS, counted.finished, strict=True):
            finished.add_metric([*labels, status], number)
        for outcome, number in zip(OUTCOMES, counted.attempts, strict=True):
            attempts.add_metric([*labels, outcome], number)
        lost.add_metric(labels, counted.lost)
        runs.add_metric(labels, cumulative(counted.run_times), counted.run_seconds)
        waits.add_metric(labels, cumulative(counted.wait_times), counted.wait_seconds)
    yield from (enqueued, finished, attempts, lost, runs, waits)


def of_names(names: Mapping[str, Counted]) -> Iterator[Metric]:
    """Yield counters by task name."""
    attempts = _counter(
        "name_attempts", "Attempts that ended, by task name and outcome.",
        "name", "outcome",
    )  # fmt: skip
    runs = SummaryMetricFamily(
        "taskqueue_name_run_seconds", "Run times of attempts, by task name.", labels=["name"]
    )
    for name, counted in sorted(names.items()):
        labels = _safe(name)
        for outcome, number in zip(OUTCOMES, counted.attempts, strict=True):
            attempts.add_metric([*labels, outcome], number)
        runs.add_metric(labels, sum(counted.run_times.values()), counted.run_seconds)
    yield from (attempts, runs)


def of_workers(workers: Sequence[ShownWorker]) -> Iterator[Metric]:
    """Yield gauges of the workers."""
    states = _gauge(
        "workers", "Workers by state; stopped workers are forgotten after a while.", "state"
    )
    number = Counter(worker.state for worker in workers)
    for state in STATES.values():
        states.add_metric([state], number[state])
    yield states
    alive = living(workers)
    slots = _gauge("slots", "Slots of the running workers.")
    slots.add_metric([], sum(worker.slots for worker in alive))
    busy = _gauge("slots_busy", "Slots of the running workers that are in use.")
    busy.add_metric([], sum(worker.busy for worker in alive))
    yield from (slots, busy)


def of_schedules(timetables: Mapping[str, Timetable]) -> Iterator[Metric]:
    """Yield gauges of the schedules."""
    last = _gauge(
        "schedule_last_run_timestamp_seconds", "Nominal time of the last run that was enqueued.",
        "schedule",
    )  # fmt: skip
    upcoming = _gauge(
        "schedule_next_run_timestamp_seconds",
        "Nominal time of the next run; none while paused or disabled.",
        "schedule",
    )  # fmt: skip
    for schedule, times in sorted(timetables.items()):
        for family, moment in ((last, times.last), (upcoming, times.next)):
            if moment is not None:
                family.add_metric(_safe(schedule), moment.timestamp())
    yield from (last, upcoming)


def of_tables(sizes: Mapping[str, int]) -> Iterator[Metric]:
    """Yield the sizes of the tables."""
    family = _gauge("table_size_bytes", "Size of a table with its indexes.", "table")
    for table, size in sorted(sizes.items()):
        family.add_metric([table], size)
    yield family


def _gauge(name: str, help: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"taskqueue_{name}", help, labels=labels)


def _counter(name: str, help: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"taskqueue_{name}", help, labels=labels)


def _histogram(name: str, help: str, *labels: str) -> HistogramMetricFamily:
    return HistogramMetricFamily(f"taskqueue_{name}", help, labels=labels)


def _safe(*values: str) -> list[str]:
    """Return label values that can be encoded."""
    return [value.encode("utf-8", "replace").decode() for value in values]
