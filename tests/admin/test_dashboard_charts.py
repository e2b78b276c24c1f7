"""Charts say what their figures are: in shapes, in words, and without a script or a style."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from django.utils import translation

from taskqueue.admin.charts import (
    HEIGHT,
    WIDTH,
    count_text,
    nice_top,
    outcomes_chart,
    times_chart,
)
from taskqueue.core.histogram import Histogram, bucket_of
from taskqueue.display import sparkline
from taskqueue.monitoring.durations import rounded_age, short_duration
from taskqueue.monitoring.series import Attempts, Series

Draw = Callable[[Series], str]
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def make_series(
    succeeded: Sequence[int] = (),
    failed: Sequence[int] = (),
    lost: Sequence[int] = (),
    stopped: Sequence[int] = (),
    ran: Sequence[Sequence[float]] = (),
    waited: Sequence[Sequence[float]] = (),
    *,
    steps: int = 4,
    step_seconds: int = 60,
) -> Series:
    """Steps from noon on; what is not given is nothing."""

    def counts(given: Sequence[int]) -> list[int]:
        return [*given, *[0] * (steps - len(given))]

    def histograms(given: Sequence[Sequence[float]]) -> list[Histogram]:
        found = [Histogram(map(bucket_of, seconds)) for seconds in given]
        return [*found, *(Histogram() for _ in range(steps - len(given)))]

    return Series(
        span="hour",
        step_seconds=step_seconds,
        starts=[START + timedelta(seconds=step_seconds * number) for number in range(steps)],
        steps=list(
            map(
                Attempts,
                *map(counts, (succeeded, failed, lost, stopped)),
                histograms(ran),
                histograms(waited),
            )
        ),
    )


def drawn(chart: str) -> ElementTree.Element:
    """The chart, which is well-formed, in one element."""
    return ElementTree.fromstring(f"<div>{chart}</div>")


def attributes(chart: str, tag: str, name: str) -> list[str]:
    return [each.get(name, "") for each in drawn(chart).iter(tag)]


def bars(chart: str) -> list[ElementTree.Element]:
    """The bars of the drawing, not those of the legend."""
    [plot] = [each for each in drawn(chart).iter("svg") if each.get("role") == "img"]
    return [each for each in plot if "taskqueue-bar" in each.get("class", "")]


def cells(chart: str) -> list[list[str]]:
    """The table that stands for the chart."""
    rows = drawn(chart).find(".//tbody")
    assert rows is not None
    return [["".join(cell.itertext()) for cell in row] for row in rows]


# Bars


def test_bars_are_stacked_and_as_high_as_their_share_of_the_axis() -> None:
    chart = outcomes_chart(make_series([6, 0, 3], [2, 0, 1]))
    heights = [float(bar.get("height", "")) for bar in bars(chart)]
    assert heights == [HEIGHT * 6 / 8, HEIGHT * 2 / 8, HEIGHT * 3 / 8, HEIGHT / 8]
    tops = [float(bar.get("y", "")) for bar in bars(chart)]
    assert tops == [HEIGHT * 2 / 8, 0, HEIGHT * 5 / 8, HEIGHT * 4 / 8]
    lefts = [float(bar.get("x", "")) for bar in bars(chart)]
    assert lefts[0] == lefts[1] < WIDTH / 4 < WIDTH / 2 < lefts[2] < WIDTH * 3 / 4


def test_one_failure_among_a_million_is_seen() -> None:
    chart = outcomes_chart(make_series([1_000_000], [1]))
    assert min(float(bar.get("height", "")) for bar in bars(chart)) >= 2
    assert all(float(bar.get("y", "")) >= 0 for bar in bars(chart))


def test_the_table_tells_every_step_that_has_any() -> None:
    chart = outcomes_chart(make_series([5, 0, 7], [0, 0, 2], [0, 0, 1]))
    assert cells(chart) == [["12:00", "5", "0", "0"], ["12:02", "7", "2", "1"]]
    assert "lost" in chart
    assert "stopped" not in "".join(drawn(chart).itertext())


def test_a_chart_has_a_title_a_description_and_labels() -> None:
    chart = outcomes_chart(make_series([5, 0, 7], [0, 0, 2]), key="mine")
    [plot] = [each for each in drawn(chart).iter("svg") if each.get("role") == "img"]
    title, described = plot.find("title"), plot.find("desc")
    assert title is not None
    assert described is not None
    assert plot.get("aria-labelledby") == f"{title.get('id')} {described.get('id')}"
    assert "per minute" in (title.text or "")
    assert described.text == "succeeded: 12, failed: 2"
    labels = ["12:00", "12:01", "12:02", "12:03", "12:04", "12", "9", "6", "3", "0"]
    assert set(labels) <= set(drawn(chart).itertext())


def test_failures_have_a_pattern_besides_their_colour() -> None:
    chart = outcomes_chart(make_series([1], [1], [1], [1]), key="mine")
    fills = [bar.get("fill") for bar in bars(chart)]
    assert fills == [
        None, "url(#taskqueue-mine-failed)", "url(#taskqueue-mine-lost)",
        "url(#taskqueue-mine-stopped)",
    ]  # fmt: skip
    paths = [each.get("d") for each in drawn(chart).iterfind(".//pattern/path")]
    assert len(set(paths)) == 3


@pytest.mark.parametrize("draw", [outcomes_chart, times_chart])
def test_without_figures_a_sentence_says_so(draw: Draw) -> None:
    chart = draw(make_series())
    assert "<svg" not in chart
    assert "in this period" in chart


@pytest.mark.parametrize(
    ("seconds", "words"), [(60, "per minute"), (900, "per 15 minutes"), (7200, "per 2 hours")]
)
def test_a_chart_names_the_length_of_its_steps(seconds: int, words: str) -> None:
    assert words in outcomes_chart(make_series([1], step_seconds=seconds))


def test_days_are_shown_if_the_span_is_longer_than_one() -> None:
    chart = outcomes_chart(make_series([1, 1], steps=84, step_seconds=7200))
    assert cells(chart) == [["03-01 12:00", "1", "0"], ["03-01 14:00", "1", "0"]]
    assert "03-08" in list(drawn(chart).itertext())


# Lines


def lines(chart: str, name: str) -> list[str]:
    """The courses of one line, first the two of the legend; lone points stand behind others."""
    wanted = f"taskqueue-line taskqueue-line--{name}"
    paths = [(each.get("class", ""), each.get("d", "")) for each in drawn(chart).iter("path")]
    return [course for kind, course in paths if kind in (wanted, f"{wanted} taskqueue-dots")]


def test_lines_are_on_a_scale_of_powers_of_ten() -> None:
    chart = times_chart(make_series(ran=[[1.0], [1.0]], waited=[[0.011], [0.011]]))
    [axis] = [each for each in drawn(chart).iter("div") if each.get("class") == "taskqueue-plot-y"]
    assert list(axis.itertext()) == ["1 s", "100 ms", "10 ms"]
    _mark, _point, course = lines(chart, "run_p95")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", course)]
    assert len(heights) == 2
    assert all(0 <= height < HEIGHT / 10 for height in heights)


def test_a_line_is_broken_where_nothing_ran() -> None:
    chart = times_chart(make_series(ran=[[1.0], [1.0], [], [1.0]]))
    _mark, point, path, dots = lines(chart, "run_p50")
    assert point.endswith("h0.01")
    assert (path.count("M"), path.count("L")) == (1, 1)
    assert (dots.count("M"), dots.count("h0.01")) == (1, 1)
    assert [row[0] for row in cells(chart)] == ["12:00", "12:01", "12:03"]


def test_a_duration_of_zero_or_of_weeks_stays_within_the_drawing() -> None:
    chart = times_chart(make_series(ran=[[0.0], [10**9]], waited=[[0.0], [10**9]]))
    for path in attributes(chart, "path", "d"):
        for height in re.findall(r"[ML][\d.]+ (-?[\d.]+)", path):
            assert 0 <= float(height) <= HEIGHT


# Numbers and words


@pytest.mark.parametrize("language", ["en", "de", "zh-hans"])
def test_numbers_in_drawings_are_free_of_the_locale(language: str) -> None:
    with translation.override(language):
        chart = outcomes_chart(make_series([1234567, 3], [1])) + times_chart(
            make_series(ran=[[1.5]])
        )
    for name in ("x", "y", "width", "height", "d"):
        for tag in ("rect", "path"):
            for value in attributes(chart, tag, name):
                assert "," not in value, value


@pytest.mark.parametrize("draw", [outcomes_chart, times_chart])
def test_charts_hold_no_script_and_no_style(draw: Draw) -> None:
    chart = draw(make_series([1, 2], [1], [1], [1], [[1.0]], [[2.0]]))
    assert not re.search(r"style|<script|\son\w+=|javascript:", chart)


def test_a_sparkline_is_read_aloud_as_its_sum() -> None:
    chart = sparkline([0, 3, 12])
    assert chart.count("15 finished in the last hour") == 2
    heights = [float(value) for value in re.findall(r"v-([\d.]+)", chart)]
    assert heights == [1, 5, 20]
    assert drawn(sparkline([])) is not None


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0, 4), (1, 4), (4, 4), (5, 8), (9, 12), (33, 40), (41, 80), (130, 160), (4001, 8000)],
)
def test_the_axis_ends_at_a_round_number(highest: int, top: int) -> None:
    assert nice_top(highest) == top


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1000, "1k"), (1500, "1.5k"), (2_000_000, "2M")]
)
def test_large_numbers_are_short_on_the_axis(value: int, text: str) -> None:
    assert count_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""), (0.0, "under 1 ms"), (0.25, "250 ms"), (0.9996, "1 s"), (4.21, "4.2 s"),
        (42.4, "42 s"), (100, "100 s"), (150, "2.5 min"), (3600, "60 min"), (9000, "2.5 h"),
        (36 * 3600, "1.5 d"), (86_400 * 12, "12 d"),
    ],
)  # fmt: skip
def test_durations_are_short(seconds: float | None, text: str) -> None:
    assert short_duration(seconds) == text


def test_ages_are_rounded_down_so_that_a_page_seldom_changes() -> None:
    assert {rounded_age(seconds) for seconds in range(10)} == {"under 10 s"}
    assert {rounded_age(seconds) for seconds in range(20, 30)} == {"20 s"}
    assert {rounded_age(seconds) for seconds in range(60, 120)} == {"1 min"}
