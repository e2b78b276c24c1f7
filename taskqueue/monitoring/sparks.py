"""How many attempts of each name ended over a span, in a few steps, from the rollups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from taskqueue.engine.connections import project_connection
from taskqueue.engine.statement import Statement
from taskqueue.monitoring.reading import now, read
from taskqueue.monitoring.rollups import ChartCache, span_of, whole_seconds

# About how many steps a sparkline has.
STEPS = 24

# By a range of the time index; no histograms are read.
_POSTGRESQL = """
SELECT
    name, floor(EXTRACT(epoch FROM starts_at - %(first)s) / %(seconds)s)::int AS place,
    sum(succeeded + failed + lost + stopped)::bigint
FROM taskqueue_rollup
WHERE starts_at >= %(first)s
GROUP BY name, place
"""
_SQLITE = """
SELECT
    name,
    (CAST(strftime('%%s', substr(starts_at, 1, 19)) AS integer) - %(epoch)s) / %(seconds)s AS place,
    sum(succeeded + failed + lost + stopped)
FROM taskqueue_rollup
WHERE starts_at >= %(first_text)s
GROUP BY name, place
"""
SPARKS = Statement(postgresql=_POSTGRESQL, sqlite=_SQLITE)
Sparks = Mapping[str, Sequence[int]]
cache: ChartCache[Sparks] = ChartCache()


def sparks(span: str) -> Sparks:
    """Return the attempts of each name that ended, step by step, oldest first.

    They may be up to ten minutes out of date. Raises ValueError for a span that is not in `SPANS`.
    """
    chosen = span_of(span)
    first = chosen.starts(now())[0]
    chart = project_connection().alias, span, first
    read_at, known = cache.of(chart)
    if known is None:
        known = _read(first, chosen.step * chosen.steps)
        cache.remember(chart, read_at, known)
    return known


def sparks_since(moment: datetime) -> Sparks:
    """Return the attempts of each name that ended since the moment, step by step."""
    first = moment.replace(second=0, microsecond=0)
    return _read(first, max(now() - first, timedelta(minutes=1)))


def _read(first: datetime, length: timedelta) -> Sparks:
    seconds = max(60, int(length.total_seconds()) // STEPS)
    number = max(1, -(-int(length.total_seconds()) // seconds))
    found: dict[str, list[int]] = {}
    for name, place, ended in read(
        SPARKS, first=first, first_text=whole_seconds(first), epoch=int(first.timestamp()),
        seconds=seconds,
    ):  # fmt: skip
        counts = found.setdefault(name, [0] * number)
        counts[max(0, min(number - 1, int(place)))] += int(ended)
    return found
