"""Failures: failed and retrying tasks, in groups that can be acted on as a whole."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.reports import ReportAdmin, report, since_of
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.monitoring.read_models.failure_group import failures, retrying

MOST_GROUPS = 100
# The verbs that a whole group is offered, with the titles of their links.
OF_FAILED = {"retry": gettext_lazy("Retry all"), "delete": gettext_lazy("Delete all")}
OF_RETRYING = {"run_now": gettext_lazy("Run all now"), "cancel": gettext_lazy("Cancel all")}
# By the text in the address, which a search takes too.
WINDOWS = {
    "": gettext_lazy("All"), "1h": gettext_lazy("Last hour"), "1d": gettext_lazy("Last day"),
    "7d": gettext_lazy("Last week"),
}  # fmt: skip


class FailureAdmin(ReportAdmin):
    """Two tables of groups, with links to their tasks and to bulk actions."""

    template = "admin/taskqueue/failure/change_list.html"

    class Media:
        css = {"all": ["taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        text = request.GET.get("since", "").strip()
        since, problem = since_of(request)
        return report(
            self,
            request,
            self.template,
            _("Failures"),
            spans=_windows(text),
            typed="" if text in WINDOWS else text,
            since=since,
            problem=problem,
            failed=failures(limit=MOST_GROUPS, since=since),
            failed_acts=_offered(OF_FAILED, request.user),
            retrying=retrying(request.user, limit=MOST_GROUPS),
            retrying_acts=_offered(OF_RETRYING, request.user),
        )


def _windows(text: str) -> list[dict[str, Any]]:
    """Return a link for each window of time."""
    return [
        {"title": title, "url": f"?{urlencode({'since': each})}", "is_current": each == text}
        for each, title in WINDOWS.items()
    ]


def _offered(titles: dict[str, Any], user: Any) -> list[tuple[TaskVerb, Any]]:
    """Return those of the verbs that the user may do, with their titles."""
    return [(TASK_VERBS[name], titles[name]) for name in titles if TASK_VERBS[name].is_for(user)]
