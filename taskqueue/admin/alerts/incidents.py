"""Alerts: what is firing, what has ended, and acknowledging."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.html import format_html
from django.utils.translation import gettext as _

from taskqueue.access.permissions import VIEW_ALERT_RULES, VIEW_ALERTS
from taskqueue.admin.acts import ActsAdmin, noted, reason_of
from taskqueue.admin.alerts.words import KINDS
from taskqueue.admin.denied import Denied
from taskqueue.admin.filters import row_id
from taskqueue.admin.links import back
from taskqueue.admin.reports import RowReportAdmin, report
from taskqueue.admin.subjects import alert_url, example_url
from taskqueue.admin.tables import LISTING, Column, Table, part
from taskqueue.core.alerts import IncidentStatus
from taskqueue.display import breakable, moment
from taskqueue.engine.alerts.alert_verbs import ALERT_VERBS
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Incident
from taskqueue.monitoring.read_models.alert import alert_rows, shown_alerts

MOST = 200
ACKNOWLEDGE = ALERT_VERBS["acknowledge"]


class IncidentAdmin(ActsAdmin, RowReportAdmin):
    """The list shows firing alerts first; the page of an alert says what to do about it."""

    page_template = "admin/taskqueue/alert/page.html"
    routes = (("<int:object_id>/act/", "act"),)

    class Media:
        css = {"all": ["taskqueue/charts.css", "taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Show alerts, or those whose rule or subject contains the search text."""
        text = request.GET.get("q", "").strip()
        rows = alert_rows()
        if text:
            found = Q(rule__name__icontains=text) | Q(subject__icontains=text)
            rows = rows.filter(found) if is_storable(text) else rows.none()
        firing = rows.filter(is_settled=False, status=IncidentStatus.FIRING).order_by("-id")
        ended = rows.filter(ended_at__isnull=False).order_by("-ended_at")
        tools = []
        if request.user.has_perm(VIEW_ALERT_RULES):
            tools = [(_("Alert rules"), self.links.url("alertrule_changelist"))]
        return report(
            self, request, LISTING, _("Alerts"),
            tables=[self._firing(request, firing[:MOST]), self._ended(ended[:MOST])],
            text=text,
            search_label=_("Rule or subject"),
            search_tools=tools,
        )  # fmt: skip

    def _firing(self, request: HttpRequest, rows: Any) -> Table:
        state = Column(
            title=_("State"), show=part("admin/taskqueue/alert/state.html", request, "alert")
        )
        acts = Column(
            title=_("Actions"),
            is_quiet=True,
            show=part(
                "admin/taskqueue/alert/acknowledge.html", request, "alert",
                verb=ACKNOWLEDGE, here=request.get_full_path(),
            ),
        )  # fmt: skip
        return Table(
            key="taskqueue-firing",
            title=_("Firing"),
            columns=[
                *self._columns(),
                state,
                *([acts] if ACKNOWLEDGE.is_for(request.user) else ()),
            ],
            rows=shown_alerts(rows),
            empty=_("Nothing is firing."),
        )

    def _ended(self, rows: Any) -> Table:
        until = Column(title=_("Until"), show=lambda alert: moment(alert.ended_at))
        return Table(
            key="taskqueue-ended",
            title=_("History"),
            columns=[*self._columns(), until],
            rows=shown_alerts(rows),
            empty=_("No alert has ended yet."),
        )

    def _columns(self) -> list[Column]:
        return [
            Column(
                title=_("Alert"),
                show=lambda alert: self.links.to_row(Incident, alert.id, breakable(alert.sentence)),
            ),
            Column(
                title=_("Rule"),
                show=lambda alert: format_html(
                    "{}{}{}", KINDS[alert.kind], _(": "), breakable(alert.rule)
                ),
            ),
            Column(title=_("Since"), show=lambda alert: moment(alert.began_at)),
        ]

    def row(self, text: str) -> Any:
        """Return the alert with that key if it has been raised, else None."""
        return alert_rows().filter(pk=row_id(text)).first()

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Show the page of an alert."""
        (alert,) = shown_alerts([row])
        return report(
            self, request, self.page_template, row.subject or str(KINDS[alert.kind]),
            row=row,
            alert=alert,
            kind=KINDS[alert.kind],
            subject_url=alert_url(self.links, alert.kind, row.subject),
            example_url=example_url(self.links, alert.kind, alert.example),
            may_act=ACKNOWLEDGE.is_for(request.user),
            verb=ACKNOWLEDGE,
        )  # fmt: skip

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Acknowledge an alert, for users who may also view it."""
        if not (ACKNOWLEDGE.is_for(request.user) and request.user.has_perm(VIEW_ALERTS)):
            raise Denied(VIEW_ALERTS, *ACKNOWLEDGE.permissions)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.row(str(object_id))
        if row is None:
            self.message_user(request, _("There is no such alert any more."), messages.ERROR)
            return back(request, self.links.url("incident_changelist"))
        self.act(request, ACKNOWLEDGE, row)
        return back(request, self.links.url("incident_change", row.pk))

    def note(self, request: HttpRequest, row: Any, done: str) -> None:
        """Record it, with the reason, in the admin's own history too."""
        self.log_change(request, row, noted(done, reason_of(request)))
