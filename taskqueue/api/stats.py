"""Statistics: current counts, series of the last hour, day or week, and groups of failures."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from datetime import datetime

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_FIGURES, VIEW_QUEUES, VIEW_TASKS, VIEW_WORKERS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Moment, Strict, Text
from taskqueue.api.views import Digits
from taskqueue.core.states import TaskStatus
from taskqueue.monitoring.comparison import Compared, compared, compared_since
from taskqueue.monitoring.counts import CAP, status_counts
from taskqueue.monitoring.read_models.base import about, from_row, json_form
from taskqueue.monitoring.read_models.failure_group import (
    NEWEST,
    FailureGroup,
    RetryingGroup,
    failures,
    retrying,
)
from taskqueue.monitoring.read_models.queue import read_queues
from taskqueue.monitoring.read_models.worker import ShownWorker, living, read_workers
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.rollups import SPANS
from taskqueue.monitoring.series import OUTCOMES, Attempts, series

MOST_WORKERS, MOST_NAMES, MOST_GROUPS = 1000, 1000, 100
SECONDS_AN_HOUR = 3600
BY_STEP = (*OUTCOMES, "run_p50", "run_p95", "wait_p50", "wait_p95")


@dataclass(frozen=True, kw_only=True)
class CountShown:
    """A count, perhaps capped."""

    count: int = about(f"Counted up to {CAP:,} or less.", column="value")
    is_capped: bool = about("Whether there may be more.")


TaskCounts = make_dataclass("TaskCounts", [(status.value, CountShown) for status in TaskStatus])
TaskCounts.__doc__ = "By status."


@dataclass(frozen=True, kw_only=True)
class QueueTotals:
    """Totals of all queues."""

    total: int
    paused: int
    unserved: int = about("Queues with waiting tasks that no worker serves.")
    oldest_seconds: float | None = about("Waiting time of the oldest ready task.")


@dataclass(frozen=True, kw_only=True)
class WorkerTotals:
    """Totals of the running workers."""

    alive: int
    busy: int = about("Slots in use.")
    slots: int


@dataclass(frozen=True, kw_only=True)
class LastHour:
    """Attempts that ended in the last hour; durations in seconds."""

    succeeded: int
    failed: int
    lost: int
    stopped: int
    per_second: float = about("Attempts of all outcomes.")
    failure_rate: float | None = about("From 0 to 1; null: no attempt ended.")
    run_p50: float | None
    run_p95: float | None
    wait_p50: float | None
    wait_p95: float | None


@dataclass(frozen=True, kw_only=True)
class StatsShown:
    """The state of all queues, workers and tasks now."""

    at: datetime
    tasks: TaskCounts  # type: ignore[valid-type]
    queues: QueueTotals | None = about("null: you lack the permission to view them.")
    workers: WorkerTotals | None = about("null: you lack the permission to view them.")
    last_hour: LastHour


class Stats(ApiView):
    """The state of all queues, workers and tasks now."""

    needs = {"GET": (VIEW_TASKS, VIEW_FIGURES)}
    tag = "stats"

    @endpoint("getStats", answers={200: StatsShown})
    def get(self, request: Request) -> Response:
        """Tasks by status, queues, workers, and the attempts of the last hour."""
        workers = read_workers(limit=MOST_WORKERS)
        sees = request.user.has_perm
        counts = {name: from_row(CountShown, count) for name, count in status_counts().items()}
        shown = StatsShown(
            at=now(),
            tasks=TaskCounts(**counts),
            queues=_queues(workers) if sees(VIEW_QUEUES) else None,
            workers=_workers(workers) if sees(VIEW_WORKERS) else None,
            last_hour=_last_hour(series("hour").whole),
        )
        return Response(json_form(shown))


def _queues(workers: list[ShownWorker]) -> QueueTotals:
    queues = read_queues(limit=MOST_WORKERS, workers=workers)
    oldest = [queue.oldest_seconds for queue in queues if queue.oldest_seconds is not None]
    return QueueTotals(
        total=len(queues),
        paused=sum(queue.is_paused for queue in queues),
        unserved=sum(queue.waiting > 0 and not queue.is_served for queue in queues),
        oldest_seconds=max(oldest, default=None),
    )


def _workers(workers: list[ShownWorker]) -> WorkerTotals:
    alive = living(workers)
    return WorkerTotals(
        alive=len(alive),
        busy=sum(worker.busy for worker in alive),
        slots=sum(worker.slots for worker in alive),
    )


def _last_hour(attempts: Attempts) -> LastHour:
    ended, failed = attempts.ended, attempts.failed + attempts.lost
    return from_row(
        LastHour,
        attempts,
        per_second=ended / SECONDS_AN_HOUR,
        failure_rate=failed / ended if ended else None,
    )


class SpanQuery(Strict):
    """The span."""

    span = serializers.ChoiceField(choices=list(SPANS), required=False, default="hour")


class SeriesQuery(SpanQuery):
    """The span, and perhaps one queue or name."""

    queue_name = Text(required=False, default="", allow_blank=True, max_length=100)
    name = Text(required=False, default="", allow_blank=True, max_length=255)


@dataclass(frozen=True, kw_only=True)
class SeriesShown:
    """Attempts step by step, the oldest first; each list is as long as `starts`."""

    span: str = about(choices=SPANS)
    step_seconds: int
    starts: list[datetime]
    succeeded: list[int]
    failed: list[int]
    lost: list[int]
    stopped: list[int]
    run_p50: list[float | None] = about("Seconds; null: no attempt ran.")
    run_p95: list[float | None]
    wait_p50: list[float | None] = about("Seconds from being ready to the start.")
    wait_p95: list[float | None]


class StatsSeries(ApiView):
    """Attempts over time."""

    needs = {"GET": (VIEW_FIGURES,)}
    tag = "stats"

    @endpoint("getSeries", answers={200: SeriesShown}, query=SeriesQuery)
    def get(self, request: Request) -> Response:
        """Outcomes and durations of attempts over time, of all or of one queue or name."""
        attempts = series(**self.parameters)
        by_step = {figure: attempts.by_step(figure) for figure in BY_STEP}
        return Response(json_form(from_row(SeriesShown, attempts, **by_step)))


class PerformanceQuery(SpanQuery):
    """The span, or a moment such as that of a deploy."""

    since = Moment(
        required=False, help_text="In place of a span: from then on, at most 45 days ago."
    )
    limit = Digits(default=100, min_value=1, max_value=MOST_NAMES, help_text="Names.")


@dataclass(frozen=True, kw_only=True)
class PerformanceShown:
    """The names, the most frequent first."""

    span: str | None = about("null: since a moment.", choices=SPANS)
    names: list[Compared] = about("Each beside the same length of time before.")
    is_capped: bool = about("Whether there are more names.")


class Performance(ApiView):
    """Durations and failures by name."""

    needs = {"GET": (VIEW_FIGURES,)}
    tag = "stats"

    @endpoint("getPerformance", answers={200: PerformanceShown}, query=PerformanceQuery)
    def get(self, request: Request) -> Response:
        """How often tasks of each name ran in the span, how long they took, how many failed, and
        how that has changed since the same length of time before.
        """
        since, limit = self.parameters.get("since"), self.parameters["limit"]
        span: str | None = self.parameters["span"]
        if since is not None:
            span, names = None, compared_since(since)
        else:
            names = compared(self.parameters["span"])
        shown = PerformanceShown(span=span, names=names[:limit], is_capped=len(names) > limit)
        return Response(json_form(shown))


class FailuresQuery(Strict):
    """The number of groups, and since when."""

    since = Moment(required=False, help_text="Leave out tasks that failed up to then.")
    limit = Digits(
        default=MOST_GROUPS, min_value=1, max_value=MOST_GROUPS, help_text="Groups of each kind."
    )


@dataclass(frozen=True, kw_only=True)
class FailuresShown:
    """Groups of the newest tasks, the largest first."""

    groups: list[FailureGroup]
    looked_at: int = about(f"Failed tasks: up to {NEWEST:,}.")
    is_capped: bool = about("Whether there may be older ones, or more groups.")
    retrying: list[RetryingGroup]
    retrying_looked_at: int
    retrying_is_capped: bool


class Failures(ApiView):
    """Groups of failed and of retrying tasks, which an operation can act on."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "stats"

    @endpoint("getFailures", answers={200: FailuresShown}, query=FailuresQuery)
    def get(self, request: Request) -> Response:
        """The newest failed tasks by error and name, and the newest retrying tasks by name."""
        limit = self.parameters["limit"]
        ended = failures(limit=limit + 1, since=self.parameters.get("since"))
        coming = retrying(request.user, limit=limit + 1)
        shown = FailuresShown(
            groups=ended.groups[:limit],
            looked_at=ended.looked_at,
            is_capped=ended.is_capped or len(ended.groups) > limit,
            retrying=coming.groups[:limit],
            retrying_looked_at=coming.looked_at,
            retrying_is_capped=coming.is_capped or len(coming.groups) > limit,
        )
        return Response(json_form(shown))
