"""The parts of charts: axes, figures, legends, tables.

A drawing is stretched to the available width, so its labels stand beside it as evenly spaced text
that keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.display import HOUR, MINUTE, local_time
from taskqueue.monitoring.series import Series

WIDTH, HEIGHT = 600, 160
PARTS = 4
"""The number of equal parts into which labels divide an axis."""
NICE = (1, 2, 3, 4, 5, 6, 8, 10)
"""The values that a quarter of an axis may have, times a power of ten."""
DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing with its legend, labels, and a table for those who cannot see it."""

    key: str
    """A key that is unique on the page."""
    title: str
    summary: str
    legend: SafeString
    drawing: SafeString
    y_labels: Sequence[str]
    """From the top down."""
    x_labels: Sequence[str]
    table: SafeString

    def __html__(self) -> SafeString:
        return format_html(
            '<figure class="taskqueue-chart"><figcaption>{}</figcaption>'
            '<div class="taskqueue-plot">'
            '<div class="taskqueue-plot-y" aria-hidden="true">{}</div>'
            '<svg class="taskqueue-plot-area" viewBox="0 0 {} {}" preserveAspectRatio="none" '
            'role="img" aria-labelledby="taskqueue-{key}-title taskqueue-{key}-desc">'
            '<title id="taskqueue-{key}-title">{}</title>'
            '<desc id="taskqueue-{key}-desc">{}</desc>{}{}</svg>'
            '<div class="taskqueue-plot-x" aria-hidden="true">{}</div></div>{}</figure>',
            self.legend, _labels(self.y_labels), WIDTH, HEIGHT, self.title, self.summary,
            _gridlines(len(self.y_labels) - 1), self.drawing, _labels(self.x_labels), self.table,
            key=self.key,
        )  # fmt: skip


def number(value: float) -> str:
    """Write a number for an attribute: no locale, two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


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


def time_text(series: Series, moment: datetime) -> str:
    """Write when a step begins, as precisely as the period needs."""
    is_long = series.starts[-1] - series.starts[0] > DAY
    return local_time(moment).strftime("%m-%d %H:%M" if is_long else "%H:%M")


def time_labels(series: Series) -> list[str]:
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


def left_of(place: int, steps: int) -> float:
    """Return the left edge of a step."""
    return WIDTH * place / steps


def hit(place: int, steps: int, text: str) -> SafeString:
    """An area over one step whose tooltip has the figures."""
    return format_html(
        '<rect class="taskqueue-hit" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>',
        number(left_of(place, steps)), number(WIDTH / steps), HEIGHT, text,
    )  # fmt: skip


def legend(unit: str, entries: Iterable[tuple[SafeString, str]]) -> SafeString:
    """The legend: what the marks mean, and the unit."""
    mark = (
        '<li><svg class="taskqueue-mark" viewBox="0 0 20 12" width="20" height="12" '
        'aria-hidden="true">{}</svg>{}</li>'
    )
    return format_html(
        '<span class="taskqueue-quiet">{}</span><ul class="taskqueue-legend">{}</ul>',
        unit,
        format_html_join("", mark, entries),
    )


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> SafeString:
    """The figures of a chart as a table."""
    return format_html(
        '<details class="taskqueue-chart-table"><summary>{summary}</summary>'
        '<div class="taskqueue-wide" tabindex="0" role="region" aria-label="{title}">'
        '<table class="taskqueue-table"><caption class="taskqueue-hidden">{title}</caption>'
        "<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></details>",
        summary=_("Show as a table"),
        title=title,
        heads=format_html_join("", '<th scope="col">{}</th>', ((head,) for head in heads)),
        rows=format_html_join("", "<tr>{}</tr>", ((_cells(row),) for row in rows)),
    )


def _cells(row: Sequence[str]) -> SafeString:
    cells = format_html_join(
        "", '<td class="taskqueue-number-cell">{}</td>', ((cell,) for cell in row[1:])
    )
    return format_html('<th scope="row">{}</th>{}', row[0], cells)


def nothing(text: str) -> SafeString:
    """The text in place of a chart without figures."""
    return format_html('<p class="taskqueue-empty">{}</p>', text)


def _labels(texts: Iterable[str]) -> SafeString:
    return format_html_join("", "<span>{}</span>", ((text,) for text in texts))


def _gridlines(parts: int) -> SafeString:
    heights = (number(HEIGHT * part / parts) for part in range(parts + 1))
    line = '<line class="taskqueue-gridline" x1="0" y1="{0}" x2="{1}" y2="{0}"/>'
    return format_html_join("", line, ((height, WIDTH) for height in heights))
