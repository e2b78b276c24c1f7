"""Limits: the list with gauges, the page of a limit with its keys, and overriding its numbers."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.acts import ActsAdmin, tell_errors
from taskqueue.admin.denied import Denied
from taskqueue.admin.links import back
from taskqueue.admin.reports import RowReportAdmin, report
from taskqueue.admin.tables import LISTING, Column, Show, Table, part
from taskqueue.declarations.limits import MOST_AT_ONCE
from taskqueue.declarations.rates import LONGEST_RATE
from taskqueue.engine.control.queue_verbs import LIMIT_VERBS
from taskqueue.models import Limit
from taskqueue.monitoring.read_models.limit import (
    keys_of,
    limit_rows,
    rate_of_row,
    shown_limits,
)

MOST_LIMITS = 500
# What a limit is counted for, in words.
COUNTED_FOR = {
    "key": gettext_lazy("each key"),
    "host": gettext_lazy("each host"),
    "worker": gettext_lazy("each worker"),
    "queue": gettext_lazy("a queue"),
}


class NumbersForm(forms.Form):
    """The fields that a button of a limit posts, besides the reason."""

    verb = forms.ChoiceField(
        label=gettext_lazy("Action"), choices=[(name, name) for name in LIMIT_VERBS]
    )
    concurrency = forms.IntegerField(
        label=gettext_lazy("Tasks at once"), required=False, min_value=0, max_value=MOST_AT_ONCE
    )
    rate = forms.CharField(
        label=gettext_lazy("Starts in a period"), required=False, max_length=LONGEST_RATE
    )
    # The numbers that the page showed.
    seen = forms.CharField(max_length=100)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the verb."""
        given, seen = self.cleaned_data, self.cleaned_data["seen"]
        arguments: dict[str, Any] = {"seen": lambda row: version_of(row) == seen}
        if given["verb"] == "set":
            arguments |= {"concurrency": given["concurrency"], "rate": given["rate"] or None}
        return arguments


class LimitAdmin(ActsAdmin, RowReportAdmin):
    """A limit has a row once a worker has started whose code declares it."""

    page_template = "admin/taskqueue/limit/page.html"
    routes = (("<int:object_id>/act/", "act"),)

    class Media:
        css = {"all": ["taskqueue/charts.css", "taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Show all limits, or those whose names contain the search text."""
        text = request.GET.get("q", "").strip()
        found = list(limit_rows()[:MOST_LIMITS])
        rows = [row for row in found if text in row.name]
        keys = {row.name: row.pk for row in rows}
        table = Table(
            key="taskqueue-title",
            table_id="taskqueue-limits",
            title=_("Limits matching “%(text)s”") % {"text": text} if text else _("All limits"),
            columns=self._columns(request, keys),
            rows=shown_limits(rows),
            empty=_("No limit matches.") if text else _(
                "No limits yet. A limit appears when a worker starts whose code declares it, or "
                "when a queue is limited."
            ),
            note=_("Only the first limits are listed.") if len(found) == MOST_LIMITS else "",
        )  # fmt: skip
        return report(
            self, request, LISTING, _("Limits"),
            tables=[table], text=text, search_label=_("Name"),
        )  # fmt: skip

    def _columns(self, request: HttpRequest, keys: dict[str, int]) -> list[Column]:
        def cell_of(template: str) -> Show:
            return part(f"admin/taskqueue/limit/{template}.html", request, "limit")

        return [
            Column(
                title=_("Limit"),
                show=lambda limit: self.links.to_row(Limit, keys[limit.name], limit.name),
            ),
            Column(title=_("Counted for"), show=lambda limit: COUNTED_FOR[limit.per]),
            Column(title=_("Allowed"), show=cell_of("allowed")),
            Column(title=_("Fullest key"), show=cell_of("fullest")),
            Column(title=_("Running"), show=lambda limit: limit.running, is_number=True),
            Column(title=_("Waiting"), show=lambda limit: limit.waiting_count, is_number=True),
        ]

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Show the page of a limit."""
        (limit,) = shown_limits([row])
        return report(
            self, request, self.page_template, row.name,
            row=row,
            limit=limit,
            counted_for=COUNTED_FOR[limit.per],
            keys=keys_of(row),
            rate=rate_of_row(row)[0],
            seen=version_of(row),
            may_control=LIMIT_VERBS["set"].is_for(request.user),
            most_at_once=MOST_AT_ONCE,
            longest_rate=LONGEST_RATE,
        )  # fmt: skip

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Handle a button of the page; refused if others have changed the numbers since."""
        if not LIMIT_VERBS["set"].is_for(request.user):
            raise Denied(*LIMIT_VERBS["set"].permissions)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.row(str(object_id))
        if row is None:
            self.message_user(request, _("There is no such limit any more."), messages.ERROR)
            return back(request, self.links.url("limit_changelist"))
        form = NumbersForm(request.POST)
        if form.is_valid():
            self.act(request, LIMIT_VERBS[form.cleaned_data["verb"]], row, **form.arguments)
        tell_errors(self, request, form)
        return back(request, self.links.url("limit_change", row.pk))


def version_of(row: Limit) -> str:
    """Return the numbers of a limit as text, for the form on its page."""
    numbers = (
        row.concurrency, row.rate, row.seconds, row.concurrency_override, row.rate_override,
        row.seconds_override,
    )  # fmt: skip
    return "/".join("" if number is None else f"{number:g}" for number in numbers)
