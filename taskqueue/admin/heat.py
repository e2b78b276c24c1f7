"""A heat map of run times: the number of attempts for each step and each doubling of the time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.admin.charts import (
    HEIGHT,
    PARTS,
    TIMES,
    WIDTH,
    Line,
    Links,
    figure,
    nothing,
    per_step,
)
from taskqueue.core.histogram import STEPS, upper_bound
from taskqueue.display import svg_number
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.series import Series

# The opacity of a single attempt, so that it is visible beside thousands.
LEAST = 0.12


def by_doubling(run_times: Mapping[int, int]) -> Counter[int]:
    """Return by power of two how many attempts took up to that many seconds."""
    counts: Counter[int] = Counter()
    for bucket, count in run_times.items():
        counts[math.ceil(bucket / STEPS)] += count
    return counts


def longest(doubling: int) -> float:
    """Return the longest time of a doubling, in seconds."""
    return upper_bound(doubling * STEPS)


def heat_map(series: Series, *, links: Links | None = None) -> SafeString:
    """Draw how long attempts took in each step: the more attempts, the darker the cell."""
    steps = [by_doubling(step.run_times) for step in series.steps]
    known = [doubling for step in steps for doubling in step]
    if not known:
        return nothing(_("Nothing ran in this period."))
    low, high = min(known) - 1, max(known)
    most = max(max(step.values()) for step in steps if step)
    height, width = HEIGHT / (high - low), WIDTH / len(steps)
    cells: list[dict[str, Any]] = [
        {
            "x": svg_number(place * width),
            "y": svg_number((high - doubling) * height),
            "share": svg_number(LEAST + (1 - LEAST) * math.sqrt(count / most)),
        }
        for place, step in enumerate(steps)
        for doubling, count in sorted(step.items())
    ]
    told = ("run_p95", "run_p50")
    texts = {name: list(map(short_duration, series.by_step(name))) for name in told}
    return figure(
        "heat",
        series,
        {
            name: Line(TIMES[name], texts[name], short_duration(getattr(series.whole, name)))
            for name in told
        },
        y_labels=[
            short_duration(longest(0) * 2 ** (low + (high - low) * part / PARTS))
            for part in range(PARTS, -1, -1)
        ],
        marks=(),
        links=links,
        key="heat",
        title=_("Run times %(step)s") % {"step": per_step(series.step_seconds)},
        unit=_("%(step)s, logarithmic scale") % {"step": per_step(series.step_seconds)},
        cells=cells,
        cell_height=svg_number(height),
    )
