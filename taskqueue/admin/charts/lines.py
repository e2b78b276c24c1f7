"""Lines: wait times and run times of tasks."""

from __future__ import annotations

import math
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.admin.charts.parts import (
    HEIGHT,
    WIDTH,
    Figure,
    hit,
    left_of,
    legend,
    nothing,
    number,
    per_step,
    table,
    time_labels,
    time_text,
)
from taskqueue.display import short_duration
from taskqueue.monitoring.series import Series

FASTEST = -3
"""The lowest power of ten, in seconds, at which the scale begins."""


class Line(NamedTuple):
    """A duration for each step, in seconds; None if nothing ran."""

    name: str
    word: str
    values: list[float | None]
    overall: float | None


def times_chart(series: Series, *, key: str = "times") -> SafeString:
    """Draw the wait and run times of tasks, each as p50 and p95.

    The scale is logarithmic: a task that runs for milliseconds may have waited for hours.
    """
    lines = _lines(series)
    known = [value for line in lines for value in line.values if value is not None]
    if not known:
        return nothing(_("Nothing ran in this period."))
    low = max(FASTEST, math.floor(_power(min(known))))
    high = max(low + 1, math.ceil(_power(max(known))))
    title = _("Wait time and run time %(step)s") % {"step": per_step(series.step_seconds)}
    told = [place for place in range(len(series.starts)) if any(_values(lines, place))]
    rows = [(time_text(series, series.starts[place]), *_values(lines, place)) for place in told]
    return Figure(
        key=key,
        title=title,
        summary=", ".join(
            f"{line.word}: {short_duration(line.overall)}"
            for line in lines
            if line.overall is not None
        ),
        legend=legend(
            _("%(step)s, logarithmic scale") % {"step": per_step(series.step_seconds)},
            [(_mark(line), line.word) for line in lines],
        ),
        drawing=format_html(
            "{}{}",
            format_html_join("", "{}", ((_drawn(line, low, high),) for line in lines)),
            _hits(series, lines, told),
        ),
        y_labels=[short_duration(10.0**power) for power in range(high, low - 1, -1)],
        x_labels=time_labels(series),
        table=table(title, [_("start"), *(line.word for line in lines)], rows),
    ).__html__()


def _lines(series: Series) -> list[Line]:
    return [
        Line("wait-p95", _("wait time p95"), series.wait_p95, series.overall_wait_p95),
        Line("wait-p50", _("wait time p50"), series.wait_p50, series.overall_wait_p50),
        Line("run-p95", _("run time p95"), series.run_p95, series.overall_run_p95),
        Line("run-p50", _("run time p50"), series.run_p50, series.overall_run_p50),
    ]


def _power(seconds: float) -> float:
    """Return the power of ten of a duration: its place on the scale."""
    return math.log10(max(seconds, 10.0**FASTEST))


def _values(lines: list[Line], place: int) -> list[str]:
    return [short_duration(line.values[place]) for line in lines]


def _drawn(line: Line, low: int, high: int) -> SafeString:
    """Draw a line from step to step: broken at unknown steps, a dot for a single known step."""
    courses: list[list[str]] = [[]]
    for place, value in enumerate(line.values):
        if value is None:
            courses.append([])
            continue
        x = number(left_of(place, len(line.values)) + WIDTH / len(line.values) / 2)
        y = number(HEIGHT * (high - _power(value)) / (high - low))
        courses[-1].append(f"{x} {y}")
    path = "".join(f"M{'L'.join(points)}" for points in courses if len(points) > 1)
    # A line of no length is not drawn by every browser.
    dots = "".join(f"M{points[0]}h0.01" for points in courses if len(points) == 1)
    return format_html(
        "{}{}",
        _path(line.name, path) if path else "",
        _path(f"{line.name} taskqueue-dots", dots) if dots else "",
    )


def _mark(line: Line) -> SafeString:
    """Draw the mark of the legend: the stroke, and the shape of single points."""
    dots = f"{line.name} taskqueue-dots"
    return format_html("{}{}", _path(line.name, "M1 6 H19"), _path(dots, "M10 6h0.01"))


def _path(name: str, course: str) -> SafeString:
    return format_html('<path class="taskqueue-line taskqueue-line--{}" d="{}"/>', name, course)


def _hits(series: Series, lines: list[Line], told: list[int]) -> SafeString:
    return format_html_join(
        "", "{}",
        (
            (hit(place, len(series.starts), _told(series, lines, place)),)
            for place in told
        ),
    )  # fmt: skip


def _told(series: Series, lines: list[Line], place: int) -> str:
    figures = (
        f"{line.word}: {text}"
        for line, text in zip(lines, _values(lines, place), strict=True)
        if text
    )
    return "\n".join([time_text(series, series.starts[place]), *figures])
