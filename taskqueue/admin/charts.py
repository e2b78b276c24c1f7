"""Charts as SVG, drawn on the server from a `Series`, without scripts, styles or queries of tasks.

A drawing is stretched to the available width, so its labels are beside it, as evenly spaced text of
constant size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.display import WORDS, local_time, svg_number
from taskqueue.monitoring.comparison import Deploy
from taskqueue.monitoring.durations import HOUR, MINUTE, short_duration
from taskqueue.monitoring.series import Series

WIDTH, HEIGHT = 600, 160
# The number of equal parts into which labels divide an axis.
PARTS = 4
# The values that a quarter of an axis may have, times a power of ten.
NICE = (1, 2, 3, 4, 5, 6, 8, 10)
DAY = timedelta(days=1)
# The gap between bars, as a share of a step's width.
GAP = 0.15
# The least height of a bar, so that one failure among thousands is visible.
LEAST = 3.0
# Outcomes from the bottom up; rare ones are shown only if there are any.
COMMON, RARE = ("succeeded", "failed"), ("lost", "stopped")
# Patterns over the colour, for people who cannot distinguish red and green.
PATTERNS = {
    "failed": "M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6",
    "lost": "M0 4 H8 M4 0 V8",
    "stopped": "M0 4 H8",
}
# The durations of a series, in seconds; None if nothing ran.
TIMES = {
    "wait_p95": gettext_lazy("wait time p95"),
    "wait_p50": gettext_lazy("wait time p50"),
    "run_p95": gettext_lazy("run time p95"),
    "run_p50": gettext_lazy("run time p50"),
}
# The lowest power of ten, in seconds, at which the scale begins.
FASTEST = -3


# Returns the address of the tasks that finished within a step, given its start and end.
Links = Callable[[datetime, datetime], str]


class Line(NamedTuple):
    """A line or a kind of bar: its name, its figures by step, and its figure for the whole span."""

    word: Any
    texts: Sequence[str]
    whole: str


def outcomes_chart(
    series: Series,
    *,
    key: str = "outcomes",
    marks: Sequence[Deploy] = (),
    links: Links | None = None,
) -> SafeString:
    """Draw the outcomes of attempts: a stacked bar for each step."""
    statuses = [*COMMON, *(status for status in RARE if any(series.by_step(status)))]
    counts: dict[str, list[int]] = {status: series.by_step(status) for status in statuses}
    highest = max(map(sum, zip(*counts.values(), strict=True)))
    if not highest:
        return nothing(_("No attempts finished in this period."))
    top, step = nice_top(highest), per_step(series.step_seconds)
    return figure(
        "outcomes",
        series,
        {
            status: Line(WORDS[status], list(map(str, counts[status])), str(sum(counts[status])))
            for status in statuses
        },
        y_labels=[count_text(top * part // PARTS) for part in range(PARTS, -1, -1)],
        key=key,
        title=_("Finished attempts %(step)s") % {"step": step},
        unit=step,
        marks=marks,
        links=links,
        bars=_bars(counts, top),
        bar_width=svg_number(WIDTH / len(series.starts) * (1 - GAP)),
        patterns=PATTERNS,
    )


def times_chart(
    series: Series, *, key: str = "times", marks: Sequence[Deploy] = (), links: Links | None = None
) -> SafeString:
    """Draw the wait and run times of tasks, each as p50 and p95.

    The scale is logarithmic: a task that runs for milliseconds may have waited for hours.
    """
    lines: dict[str, list[float | None]] = {name: series.by_step(name) for name in TIMES}
    known = [value for values in lines.values() for value in values if value is not None]
    if not known:
        return nothing(_("Nothing ran in this period."))
    low = max(FASTEST, math.floor(_power(min(known))))
    high = max(low + 1, math.ceil(_power(max(known))))
    step = per_step(series.step_seconds)
    return figure(
        "times",
        series,
        {
            name: Line(
                TIMES[name],
                list(map(short_duration, values)),
                short_duration(getattr(series.whole, name)),
            )
            for name, values in lines.items()
        },
        y_labels=[short_duration(10.0**power) for power in range(high, low - 1, -1)],
        key=key,
        title=_("Wait time and run time %(step)s") % {"step": step},
        unit=_("%(step)s, logarithmic scale") % {"step": step},
        marks=marks,
        links=links,
        courses={name: _courses(values, low, high) for name, values in lines.items()},
    )


def figure(
    kind: str,
    series: Series,
    lines: Mapping[str, Line],
    *,
    y_labels: Sequence[str],
    marks: Sequence[Deploy],
    links: Links | None,
    **context: Any,
) -> SafeString:
    """Render a drawing with its legend, labels, and a table for those who cannot see it.

    A step without any figures is left out of the table.
    """
    steps, length = [], timedelta(seconds=series.step_seconds)
    for place, start in enumerate(series.starts):
        texts = [(line.word, line.texts[place]) for line in lines.values()]
        told = [(word, text) for word, text in texts if text not in ("", "0")]
        if told:
            steps.append(
                {
                    "left": svg_number(WIDTH * place / len(series.starts)),
                    "start": _time_text(series, start),
                    "figures": [text for _word, text in texts],
                    "told": told,
                    "url": links(start, start + length) if links else "",
                }
            )
    context |= {
        "names": {name: line.word for name, line in lines.items()},
        "summary": ", ".join(f"{line.word}: {line.whole}" for line in lines.values() if line.whole),
        "steps": steps,
        "has_links": links is not None,
        "deploys": list(_deploys(series, marks)),
        "step_width": svg_number(WIDTH / len(series.starts)),
        "width": WIDTH,
        "height": HEIGHT,
        "y_labels": y_labels,
        "gridlines": [
            svg_number(HEIGHT * part / (len(y_labels) - 1)) for part in range(len(y_labels))
        ],
        "x_labels": _time_labels(series),
    }
    return render_to_string(f"admin/taskqueue/charts/{kind}.html", context)


def _deploys(series: Series, marks: Sequence[Deploy]) -> Iterator[dict[str, str]]:
    """Yield the position of each mark within the period, and its text."""
    first = series.starts[0]
    whole = series.starts[-1] + timedelta(seconds=series.step_seconds) - first
    for mark in marks:
        share = (mark.at - first) / whole
        if 0 <= share <= 1:
            text = _("%(version)s, since %(when)s") % {
                "version": mark.version, "when": _time_text(series, mark.at),
            }  # fmt: skip
            yield {"x": svg_number(WIDTH * share), "text": text}


def nothing(text: str) -> SafeString:
    """Return the text in place of a chart without figures."""
    return format_html('<p class="taskqueue-empty">{}</p>', text)


def _bars(counts: Mapping[str, Sequence[int]], top: int) -> Iterator[dict[str, str]]:
    """Yield the bars, step by step and from the bottom up."""
    for place, step in enumerate(zip(*counts.values(), strict=True)):
        ground = float(HEIGHT)
        left = svg_number(WIDTH * (place + GAP / 2) / len(counts["succeeded"]))
        for status, count in zip(counts, step, strict=True):
            if count:
                height = min(ground, max(LEAST, HEIGHT * count / top))
                ground -= height
                yield {
                    "status": status,
                    "x": left,
                    "y": svg_number(ground),
                    "height": svg_number(height),
                }


def _courses(values: Sequence[float | None], low: int, high: int) -> tuple[str, str]:
    """Return the path of a line, broken at unknown steps, and of the dots for single steps."""
    courses: list[list[str]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            courses.append([])
            continue
        x = svg_number(WIDTH * (place + 0.5) / len(values))
        y = svg_number(HEIGHT * (high - _power(value)) / (high - low))
        courses[-1].append(f"{x} {y}")
    path = "".join(f"M{'L'.join(points)}" for points in courses if len(points) > 1)
    # Some browsers do not draw a line without length.
    dots = "".join(f"M{points[0]}h0.01" for points in courses if len(points) == 1)
    return path, dots


def _power(seconds: float) -> float:
    """Return the power of ten of a duration: its place on the scale."""
    return math.log10(max(seconds, 10.0**FASTEST))


def count_text(value: int) -> str:
    """Write a whole number for the margin of a chart."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:.4g}{unit}"
    return str(value)


def nice_top(highest: int) -> int:
    """Return the least round number that is not below `highest` and has whole quarters."""
    quarter = max(1, math.ceil(highest / PARTS))
    size: int = 10 ** (len(str(quarter)) - 1)
    return PARTS * next(nice * size for nice in NICE if nice * size >= quarter)


def _time_text(series: Series, moment: datetime) -> str:
    """Write when a step begins, as precisely as the period needs."""
    is_long = series.starts[-1] - series.starts[0] > DAY
    return local_time(moment).strftime("%m-%d %H:%M" if is_long else "%H:%M")


def _time_labels(series: Series) -> list[str]:
    """Return evenly spaced labels from the first moment to the last."""
    first = series.starts[0]
    whole = series.starts[-1] + timedelta(seconds=series.step_seconds) - first
    shape = "%m-%d" if whole > 2 * DAY else "%H:%M"
    moments = (first + whole * part / PARTS for part in range(PARTS + 1))
    return [local_time(moment).strftime(shape) for moment in moments]


def per_step(seconds: int) -> str:
    """Return the unit of a step."""
    if seconds == MINUTE:
        return _("per minute")
    if seconds < HOUR:
        return _("per %(number)s minutes") % {"number": seconds // MINUTE}
    return _("per %(number)s hours") % {"number": f"{seconds / HOUR:g}"}
