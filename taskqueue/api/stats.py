"""Counts now, and how the last hour, day or week went."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_FIGURES, VIEW_QUEUES, VIEW_TASKS, VIEW_WORKERS
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Moment, Strict, Text
from taskqueue.api.paging import Digits
from taskqueue.api.serializing import serializer_for
from taskqueue.core.states import TaskStatus
from taskqueue.monitoring.counts import CAP, status_counts
from taskqueue.monitoring.performance import NamePerformance, performance
from taskqueue.monitoring.read_models.queue import ShownQueue, read_queues
from taskqueue.monitoring.read_models.worker import ShownWorker, living, read_workers
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.rollups import SPANS
from taskqueue.monitoring.series import OUTCOMES, Attempts, series

MOST_WORKERS = 1000
SECONDS_AN_HOUR = 3600
BY_STEP = (*OUTCOMES, "run_p50", "run_p95", "wait_p50", "wait_p95")


class CountShown(serializers.Serializer[Any]):
    """A count, perhaps capped."""

    count = serializers.IntegerField(source="value", help_text=f"Counted up to {CAP:,} or less.")
    is_capped = serializers.BooleanField(help_text="Whether there may be more.")


def _counts() -> type[serializers.Serializer[Any]]:
    fields = {status.value: CountShown() for status in TaskStatus}
    return type("TaskCounts", (serializers.Serializer,), {**fields, "__doc__": "By status."})


class QueueTotals(serializers.Serializer[Any]):
    """Totals of all queues."""

    total = serializers.IntegerField()
    paused = serializers.IntegerField()
    unserved = serializers.IntegerField(
        help_text="Queues with waiting tasks that no worker serves."
    )
    oldest_seconds = serializers.FloatField(
        allow_null=True, help_text="Waiting time of the oldest ready task."
    )


class WorkerTotals(serializers.Serializer[Any]):
    """Totals of the running workers."""

    alive = serializers.IntegerField()
    busy = serializers.IntegerField(help_text="Slots in use.")
    slots = serializers.IntegerField()


class LastHour(serializers.Serializer[Any]):
    """Attempts that ended in the last hour; durations in seconds."""

    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()
    lost = serializers.IntegerField()
    stopped = serializers.IntegerField()
    per_second = serializers.SerializerMethodField(help_text="Attempts of all outcomes.")
    failure_rate = serializers.SerializerMethodField(
        help_text="From 0 to 1; null: no attempt ended."
    )
    run_p50 = serializers.FloatField(allow_null=True)
    run_p95 = serializers.FloatField(allow_null=True)
    wait_p50 = serializers.FloatField(allow_null=True)
    wait_p95 = serializers.FloatField(allow_null=True)

    def get_per_second(self, attempts: Attempts) -> float:
        """All attempts of the hour."""
        return attempts.ended / SECONDS_AN_HOUR

    def get_failure_rate(self, attempts: Attempts) -> float | None:
        """The part that failed or was lost."""
        return (attempts.failed + attempts.lost) / attempts.ended if attempts.ended else None


class StatsShown(serializers.Serializer[Any]):
    """The state of all queues, workers and tasks now."""

    at = Moment()
    tasks = _counts()()
    queues = QueueTotals(allow_null=True, help_text="null: you lack the permission to view them.")
    workers = WorkerTotals(allow_null=True, help_text="null: you lack the permission to view them.")
    last_hour = LastHour()


class SeriesQuery(Strict):
    """The span, and perhaps one queue or name."""

    span = serializers.ChoiceField(choices=list(SPANS), required=False, default="hour")
    queue_name = Text(required=False, default="", allow_blank=True, max_length=100)
    name = Text(required=False, default="", allow_blank=True, max_length=255)


class SeriesShown(serializers.Serializer[Any]):
    """Attempts step by step, the oldest first; each list is as long as `starts`."""

    span = serializers.ChoiceField(choices=list(SPANS))
    step_seconds = serializers.IntegerField()
    starts = serializers.ListField(child=Moment())
    succeeded = serializers.ListField(child=serializers.IntegerField())
    failed = serializers.ListField(child=serializers.IntegerField())
    lost = serializers.ListField(child=serializers.IntegerField())
    stopped = serializers.ListField(child=serializers.IntegerField())
    run_p50 = serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="Seconds; null: no attempt ran."
    )
    run_p95 = serializers.ListField(child=serializers.FloatField(allow_null=True))
    wait_p50 = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        help_text="Seconds from being ready to the start.",
    )
    wait_p95 = serializers.ListField(child=serializers.FloatField(allow_null=True))


class Stats(ApiView):
    """The state of all queues, workers and tasks now."""

    needs = {"GET": (VIEW_TASKS, VIEW_FIGURES)}
    tag = "stats"

    @describe("getStats", answers={200: StatsShown})
    def get(self, request: Request) -> Response:
        """Tasks by status, queues, workers, and the attempts of the last hour."""
        self.validated_query(request)
        workers = read_workers(limit=MOST_WORKERS)
        sees = request.user.has_perm
        shown = StatsShown(
            {
                "at": now(),
                "tasks": status_counts(),
                "queues": _queues(workers) if sees(VIEW_QUEUES) else None,
                "workers": _workers(workers) if sees(VIEW_WORKERS) else None,
                "last_hour": series("hour").whole,
            }
        )
        return Response(shown.data)


class StatsSeries(ApiView):
    """Attempts over time."""

    needs = {"GET": (VIEW_FIGURES,)}
    tag = "stats"

    @describe("getSeries", answers={200: SeriesShown}, query=SeriesQuery)
    def get(self, request: Request) -> Response:
        """Outcomes and durations of attempts over time, of all or of one queue or name."""
        asked = self.validated_query(request, SeriesQuery)
        attempts = series(asked["span"], queue_name=asked["queue_name"], name=asked["name"])
        columns = {figure: attempts.by_step(figure) for figure in BY_STEP}
        return Response(SeriesShown({**vars(attempts), **columns}).data)


def _queues(workers: list[ShownWorker]) -> dict[str, Any]:
    queues: list[ShownQueue] = read_queues(limit=MOST_WORKERS, workers=workers)
    oldest = [queue.oldest_seconds for queue in queues if queue.oldest_seconds is not None]
    return {
        "total": len(queues),
        "paused": sum(queue.is_paused for queue in queues),
        "unserved": sum(queue.waiting > 0 and not queue.is_served for queue in queues),
        "oldest_seconds": max(oldest, default=None),
    }


def _workers(workers: list[ShownWorker]) -> dict[str, Any]:
    alive = living(workers)
    return {
        "alive": len(alive),
        "busy": sum(worker.busy for worker in alive),
        "slots": sum(worker.slots for worker in alive),
    }


MOST_NAMES = 1000


class PerformanceQuery(Strict):
    """The span."""

    span = serializers.ChoiceField(choices=list(SPANS), required=False, default="hour")
    limit = Digits(
        required=False, default=100, min_value=1, max_value=MOST_NAMES, help_text="Names."
    )


NameJSON = serializer_for(NamePerformance)


class PerformanceShown(serializers.Serializer[Any]):
    """The names, the most frequent first."""

    span = serializers.ChoiceField(choices=list(SPANS))
    names = NameJSON(many=True)
    is_capped = serializers.BooleanField(help_text="Whether there are more names.")


class Performance(ApiView):
    """Durations and failures by name."""

    needs = {"GET": (VIEW_FIGURES,)}
    tag = "stats"

    @describe("getPerformance", answers={200: PerformanceShown}, query=PerformanceQuery)
    def get(self, request: Request) -> Response:
        """How often tasks of each name ran in the span, how long they took, how many failed."""
        asked = self.validated_query(request, PerformanceQuery)
        names = performance(asked["span"])
        kept = names[: asked["limit"]]
        shown = PerformanceShown(
            {"span": asked["span"], "names": kept, "is_capped": len(names) > len(kept)}
        )
        return Response(shown.data)
