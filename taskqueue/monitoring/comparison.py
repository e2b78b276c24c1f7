"""Compare how tasks of each name run now with the period before, and find deploys."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.models import Worker
from taskqueue.monitoring.performance import NamePerformance, performance, sums_around
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.rollups import ChartCache, Span, span_of

# Fewer attempts, before or now, do not show a change.
LEAST = 5
# Rollups are kept for 90 days, so at most half of that can be compared with the other half.
LONGEST = timedelta(days=45)
MOST_WORKERS, MOST_DEPLOYS = 1_000, 20


@dataclass(frozen=True, kw_only=True)
class Compared(NamePerformance):
    """Attempts at tasks of one name, and how they differ from those before.

    0.5 means half as much again; None means unknown.
    """

    before_count: int = about("Attempts in the same length of time before.")
    run_p50_change: float | None = about("0.5 is half as much again; null: fewer than 5 attempts.")
    run_p95_change: float | None
    failure_change: float | None = about("The difference of the rates, from -1 to 1.")


@dataclass(frozen=True)
class Deploy:
    """The first known start of a worker with a version of the project."""

    version: str
    at: datetime


cache: ChartCache[dict[str, NamePerformance]] = ChartCache()


def compared(span: str) -> list[Compared]:
    """Return each name that ran within the span, compared with the span before it.

    Raises ValueError for a span that is not in `SPANS`.
    """
    chosen = span_of(span)
    first = chosen.starts(now())[0]
    chart = project_connection().alias, span, first
    read_at, known = cache.of(chart)
    if known is None:
        known, _ = sums_around(chosen, first - chosen.steps * chosen.step, first, first)
        cache.remember(chart, read_at, known)
    return [_compared(each, known.get(each.name)) for each in performance(span)]


def compared_since(moment: datetime) -> list[Compared]:
    """Return each name that ran since the moment, compared with an equally long time before it.

    Moments are rounded to the minute, and limited so that rollups still cover the time before.
    """
    at = now()
    since = max(moment, at - LONGEST).replace(second=0, microsecond=0)
    length = max(at - since, timedelta(minutes=1))
    chunk = Span(step_seconds=max(60, int(length.total_seconds() / 60)), steps=1)
    before, after = sums_around(chunk, since - length, since)
    found = [_compared(each, before.get(each.name)) for each in after.values()]
    return sorted(found, key=lambda each: (-each.count, each.name))


def _compared(here: NamePerformance, before: NamePerformance | None) -> Compared:
    is_told = before is not None and min(here.count, before.count) >= LEAST
    known = before if is_told else None
    return Compared(
        **asdict(here),
        before_count=before.count if before else 0,
        run_p50_change=_change(here.run_p50, known.run_p50 if known else None),
        run_p95_change=_change(here.run_p95, known.run_p95 if known else None),
        failure_change=None if known is None else here.failure_rate - known.failure_rate,
    )


def _change(here: float | None, before: float | None) -> float | None:
    return here / before - 1 if here is not None and before else None


def deploys() -> list[Deploy]:
    """Return when each version of the project began to run, newest first.

    Workers report the version (`VERSION` in the settings). A worker that takes the name of another
    also takes its row, so the start of a version is that of its first worker that still has a row.
    """
    workers = Worker.objects.using(database_alias()).order_by("-id")[:MOST_WORKERS]
    first: dict[str, datetime] = {}
    for versions, started_at in workers.values_list("versions", "started_at"):
        version = versions.get("project")
        if version:
            first[version] = min(started_at, first.get(version, started_at))
    found = [Deploy(version, at.astimezone(UTC)) for version, at in first.items()]
    return sorted(found, key=lambda deploy: deploy.at, reverse=True)[:MOST_DEPLOYS]
