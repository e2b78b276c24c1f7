"""Bars: the outcomes of attempts, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.admin.charts.parts import (
    HEIGHT,
    PARTS,
    WIDTH,
    Figure,
    count_text,
    hit,
    left_of,
    legend,
    nice_top,
    nothing,
    number,
    per_step,
    table,
    time_labels,
    time_text,
)
from taskqueue.monitoring.series import Series

GAP = 0.15
"""The gap between bars, as a share of a step's width."""
LEAST = 3.0
"""The least height of a bar: one failure among thousands must be visible."""
PATTERNS = {
    "failed": "M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6",
    "lost": "M0 4 H8 M4 0 V8",
    "stopped": "M0 4 H8",
}
"""Patterns over the colour, for people who cannot tell red from green."""
SPARK_WIDTH, SPARK_HEIGHT = 72, 20


class Outcome(NamedTuple):
    """How many attempts had one outcome, by step."""

    status: str
    word: str
    counts: list[int]


def outcomes_chart(series: Series, *, key: str = "outcomes") -> SafeString:
    """Draw the outcomes of attempts: a stacked bar for each step."""
    outcomes = _outcomes(series)
    totals = [sum(counts) for counts in zip(*(outcome.counts for outcome in outcomes), strict=True)]
    if not any(totals):
        return nothing(_("No attempts finished in this period."))
    top = nice_top(max(totals))
    title = _("Finished attempts %(step)s") % {"step": per_step(series.step_seconds)}
    rows = [
        (time_text(series, start), *(str(outcome.counts[place]) for outcome in outcomes))
        for place, start in enumerate(series.starts)
        if totals[place]
    ]
    return Figure(
        key=key,
        title=title,
        summary=", ".join(f"{outcome.word}: {sum(outcome.counts)}" for outcome in outcomes),
        legend=legend(
            per_step(series.step_seconds),
            [(_bar(key, outcome.status, 0, 0, 20, 12), outcome.word) for outcome in outcomes],
        ),
        drawing=format_html("{}{}", _patterns(key), _bars(key, series, outcomes, top)),
        y_labels=[count_text(top * part // PARTS) for part in range(PARTS, -1, -1)],
        x_labels=time_labels(series),
        table=table(title, [_("start"), *(outcome.word for outcome in outcomes)], rows),
    ).__html__()


def sparkline(counts: Sequence[int]) -> SafeString:
    """Draw a few numbers as bars for a table cell; screen readers read their sum."""
    ended = sum(counts)
    text = ngettext(
        "%(count)d finished in the last hour", "%(count)d finished in the last hour", ended
    )
    width, most = SPARK_WIDTH / max(1, len(counts)), max([1, *counts])
    heights = [max(1.0, SPARK_HEIGHT * count / most) for count in counts]
    bars = format_html_join(
        "", '<rect x="{}" y="{}" width="{}" height="{}"/>',
        (
            (number(width * place), number(SPARK_HEIGHT - height), number(width * 0.8),
             number(height))
            for place, height in enumerate(heights)
        ),
    )  # fmt: skip
    return format_html(
        '<svg class="taskqueue-spark" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-label="{text}"><title>{text}</title>{bars}</svg>',
        w=SPARK_WIDTH, h=SPARK_HEIGHT, text=text % {"count": ended}, bars=bars,
    )  # fmt: skip


def _outcomes(series: Series) -> list[Outcome]:
    """Return the outcomes from the bottom up; rare ones only if there are any."""
    common = [
        Outcome("succeeded", _("succeeded"), series.succeeded),
        Outcome("failed", _("failed"), series.failed),
    ]
    rare = [
        Outcome("lost", _("lost"), series.lost),
        Outcome("stopped", _("stopped"), series.stopped),
    ]
    return common + [outcome for outcome in rare if any(outcome.counts)]


def _bars(key: str, series: Series, outcomes: Sequence[Outcome], top: int) -> SafeString:
    """Draw the bars, and over each an area whose tooltip has the figures."""
    return format_html_join(
        "", "{}",
        (
            (part,)
            for place in range(len(series.starts))
            for part in _step(key, series, outcomes, place, top)
        ),
    )  # fmt: skip


def _step(
    key: str, series: Series, outcomes: Sequence[Outcome], place: int, top: int
) -> Iterator[SafeString]:
    steps = len(series.starts)
    width = WIDTH / steps
    ground, told = float(HEIGHT), []
    for status, word, counts in outcomes:
        if counts[place]:
            height = min(ground, max(LEAST, HEIGHT * counts[place] / top))
            ground -= height
            told.append(f"{word}: {counts[place]}")
            left = left_of(place, steps) + width * GAP / 2
            yield _bar(key, status, left, ground, width * (1 - GAP), height)
    if told:
        yield hit(place, steps, "\n".join([time_text(series, series.starts[place]), *told]))


def _bar(key: str, status: str, left: float, top: float, width: float, height: float) -> SafeString:
    fill = format_html('fill="url(#taskqueue-{}-{})"', key, status) if status in PATTERNS else ""
    return format_html(
        '<rect class="taskqueue-bar{}" x="{}" y="{}" width="{}" height="{}" {}/>',
        "" if fill else f" taskqueue-bar--{status}",
        number(left), number(top), number(width), number(height), fill,
    )  # fmt: skip


def _patterns(key: str) -> SafeString:
    pattern = (
        '<pattern id="taskqueue-{}-{}" width="8" height="8" patternUnits="userSpaceOnUse">'
        '<rect class="taskqueue-bar--{}" width="8" height="8"/>'
        '<path class="taskqueue-hatch" d="{}"/></pattern>'
    )
    given = ((key, status, status, path) for status, path in PATTERNS.items())
    return format_html("<defs>{}</defs>", format_html_join("", pattern, given))
