"""The dashboard's page, and the fragment of it that is fetched again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from taskqueue.access.permissions import CONTROL_QUEUES, STOP
from taskqueue.admin.dashboard.parts import parts
from taskqueue.admin.refreshing import answer, fragment, is_refresh
from taskqueue.admin.reports import ReportAdmin, report
from taskqueue.admin.spans import span_of


class DashboardAdmin(ReportAdmin):
    """Who may view tasks sees it; each card asks besides for what it shows."""

    page_template = "admin/taskqueue/dashboard/page.html"
    fragment_template = "admin/taskqueue/dashboard/fragment.html"

    class Media:
        css = {"all": ["taskqueue/dashboard.css"]}
        js = ["taskqueue/refresh.js", "taskqueue/dashboard.js"]

    def shown(self, request: HttpRequest) -> HttpResponse:
        found = fragment(
            request, self.fragment_template, parts(request, self.links, span_of(request))
        )
        if is_refresh(request):
            return answer(request, found)
        may_act = any(map(request.user.has_perm, (CONTROL_QUEUES, STOP)))
        return report(
            self, request, self.page_template, _("Dashboard"), fragment=found, may_act=may_act
        )
