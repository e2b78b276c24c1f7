"""The page of attempts by worker: an SVG with a bar for each attempt, and a table of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.denied import Denied
from taskqueue.admin.links import Links
from taskqueue.admin.reports import LONGEST_TIME, LOOKING, report
from taskqueue.display import WORDS, local_time, svg_number
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.gantt import MOST_BARS, MOST_LOOKED, Bar, Gantt, gantt
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.searching.moments import moment

SPANS = {
    "5m": (timedelta(minutes=5), gettext_lazy("5 minutes")),
    "15m": (timedelta(minutes=15), gettext_lazy("15 minutes")),
    "1h": (timedelta(hours=1), gettext_lazy("1 hour")),
    "6h": (timedelta(hours=6), gettext_lazy("6 hours")),
    "1d": (timedelta(days=1), gettext_lazy("1 day")),
}
FIRST_SPAN = "15m"
# Pixels of a lane, of a bar in it, and of the line with a worker's name.
LANE, BAR, HEAD = 20, 16, 22
# The least width of a bar, in percent, so that a millisecond is visible.
LEAST_WIDTH = 0.15
PARTS = 4


class GanttForm(forms.Form):
    """The span and the filters, in the address."""

    span = forms.ChoiceField(
        label=gettext_lazy("Span"), required=False,
        choices=[(name, title) for name, (_length, title) in SPANS.items()],
    )  # fmt: skip
    until = forms.CharField(
        label=gettext_lazy("Until (empty: now)"), required=False, max_length=LONGEST_TIME,
        widget=forms.TextInput({"placeholder": "14:30", "autocomplete": "off"}),
    )  # fmt: skip
    worker = forms.CharField(label=gettext_lazy("Worker"), required=False, max_length=150)
    name = forms.CharField(label=gettext_lazy("Task"), required=False, max_length=255)
    queue = forms.CharField(label=gettext_lazy("Queue"), required=False, max_length=100)

    def clean_span(self) -> str:
        """Return the span, or the first choice."""
        return self.cleaned_data["span"] or FIRST_SPAN

    def clean_until(self) -> datetime | None:
        """Return the moment, in the syntax of a search."""
        text = self.cleaned_data["until"].strip()
        if not text:
            return None
        try:
            return moment(text, now=now())
        except ValueError:
            told = _("“%(text)s” is not a time: use 2h, 7d, 14:30, 2026-11-01 or 2026-11-01T14:30.")
            raise forms.ValidationError(told % {"text": text}) from None


class GanttAdmin(ReadOnlyAdmin):
    """A page of attempts, for users who may view attempts and tasks."""

    gantt_template = "admin/taskqueue/lease/gantt.html"

    def gantt_view(self, request: HttpRequest) -> HttpResponse:
        """Show what ran in each slot of the workers within a span of time."""
        if not (self.has_view_permission(request) and request.user.has_perm(VIEW_TASKS)):
            raise Denied(*self.needed_to_view, VIEW_TASKS)
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        form = GanttForm({"span": FIRST_SPAN, **request.GET.dict()})
        found = None
        if form.is_valid():
            given = form.cleaned_data
            found = gantt(
                SPANS[given["span"]][0], until=given["until"], worker=given["worker"],
                name=given["name"], queue_name=given["queue"],
            )  # fmt: skip
        return report(
            self, request, self.gantt_template, _("Attempts over workers"),
            form=form,
            chart=None if found is None else drawn(found, self.links),
            table=[] if found is None else [_row(bar, self.links) for bar in found.bars],
            is_cut=found is not None and found.is_cut,
            most=MOST_BARS,
            looked=MOST_LOOKED,
        )  # fmt: skip


def drawn(found: Gantt, links: Links) -> dict[str, Any]:
    """Return the drawing: workers one below the other, with a lane per simultaneous attempt."""
    workers: list[dict[str, Any]] = []
    bars: list[dict[str, str]] = []
    top = 0
    for name, lanes in found.lanes().items():
        workers.append({"name": name, "y": top + HEAD - 7, "line": top})
        top += HEAD
        for lane in lanes:
            bars += _bars(found, lane, top, links)
            top += LANE
    return {
        "workers": workers,
        "bars": bars,
        "height": top,
        "bar_height": BAR,
        "lanes": sum(len(lanes) for lanes in found.lanes().values()),
        "labels": [
            local_time(found.since + (found.until - found.since) * part / PARTS).strftime(
                "%H:%M:%S" if found.until - found.since < timedelta(hours=1) else "%m-%d %H:%M"
            )
            for part in range(PARTS + 1)
        ],
        "lines": [svg_number(100 * part / PARTS) for part in range(PARTS + 1)],
        "statuses": [
            (status, WORDS[status])
            for status in dict.fromkeys(bar.status for bar in reversed(found.bars))
        ],
    }


def _bars(found: Gantt, lane: list[Bar], top: int, links: Links) -> Iterator[dict[str, str]]:
    whole = found.until - found.since
    for bar in lane:
        start = max(bar.started_at, found.since)
        end = min(bar.finished_at or found.until, found.until)
        x = 100 * ((start - found.since) / whole)
        width = max(LEAST_WIDTH, 100 * ((end - start) / whole))
        yield {
            "x": svg_number(min(x, 100 - LEAST_WIDTH)),
            "y": str(top),
            "width": svg_number(width),
            "status": bar.status,
            "text": bar.name.rpartition(".")[2],
            "title": _title(bar),
            "url": links.url("task_change", bar.task_id),
        }


def _title(bar: Bar) -> str:
    began = f"{local_time(bar.started_at):%Y-%m-%d %H:%M:%S}"
    told = [bar.name, str(WORDS[bar.status]), began, _length(bar), bar.error_class]
    return " · ".join(filter(None, told))


def _length(bar: Bar) -> str:
    if bar.finished_at is None:
        return ""
    return short_duration((bar.finished_at - bar.started_at).total_seconds())


def _row(bar: Bar, links: Links) -> dict[str, Any]:
    return {"bar": bar, "length": _length(bar), "url": links.url("task_change", bar.task_id)}
