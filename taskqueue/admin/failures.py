"""Failures: failed and retrying tasks, in groups that can be acted on as a whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.formats import localize
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from taskqueue.access.permissions import VIEW_WORKFLOWS
from taskqueue.admin.reports import ReportAdmin, report, since_of
from taskqueue.admin.tables import Column, Show, Table, part
from taskqueue.display import breakable, moment
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.models import Task
from taskqueue.monitoring.read_models.failure_group import FailureGroup, failures, retrying

MOST_GROUPS = 100
LONGEST_MESSAGE = 200
# The verbs that are offered for a whole group, with the titles of their links.
OF_FAILED = {"retry": gettext_lazy("Retry all"), "delete": gettext_lazy("Delete all")}
# The titles for groups of which some tasks belong to workflows, and keep out of these verbs.
OF_SOME = {
    "retry": gettext_lazy("Retry %(some)s of %(all)s"),
    "delete": gettext_lazy("Delete %(some)s of %(all)s"),
}
OF_RETRYING = {"run_now": gettext_lazy("Run all now"), "cancel": gettext_lazy("Cancel all")}
# By the text in the address, which a search accepts too.
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
        failed = failures(limit=MOST_GROUPS, since=since)
        waiting = retrying(request.user, limit=MOST_GROUPS)
        return report(
            self,
            request,
            self.template,
            _("Failures"),
            spans=_windows(text),
            typed="" if text in WINDOWS else text,
            problem=problem,
            failed=failed,
            retrying=waiting,
            tables=[self._failed(request, failed, since), self._retrying(request, waiting)],
        )

    def _failed(self, request: HttpRequest, found: Any, since: datetime | None) -> Table:
        count, no_error = found.looked_at, _("no error class")
        lead = ngettext(
            "One failed task.", "%(number)s failed tasks, grouped by error and task.", count
        )
        if found.is_capped:
            lead = _("The newest %(number)s failed tasks, grouped. Older ones are not shown.")
        empty = _("No failed tasks. Pruned tasks are not shown here.")
        if since is not None:
            empty = _("No task failed in this period. Pruned tasks are not shown here.")
        return Table(
            key="taskqueue-failed",
            table_id="taskqueue-failures",
            title=_("Failed tasks"),
            aside=SafeString(_("since %(when)s") % {"when": moment(since)}) if since else "",
            lead=lead % {"number": count},
            columns=[
                Column(
                    title=_("Error"),
                    css="taskqueue-group",
                    show=lambda group: format_html(
                        '<span class="taskqueue-error-class">{}</span> '
                        '<span class="taskqueue-quiet">{}</span>',
                        breakable(group.error_class or no_error),
                        breakable(group.name),
                    ),
                ),
                self._tasks(),
                Column(
                    title=_("First seen"), css="taskqueue-if-wide",
                    show=lambda group: moment(group.first_seen),
                ),
                Column(
                    title=pgettext("an error", "Last seen"),
                    show=lambda group: moment(group.last_seen),
                ),
                Column(
                    title=_("Latest message"), css="taskqueue-message",
                    show=_part("example", request, longest=LONGEST_MESSAGE),
                ),
                self._acts_of_failed(request, is_capped=found.is_capped),
            ],
            rows=found.groups,
            empty=empty,
        )  # fmt: skip

    def _retrying(self, request: HttpRequest, found: Any) -> Table:
        count = found.looked_at
        lead = ngettext(
            "One task is waiting for its next attempt.",
            "%(number)s tasks are waiting for their next attempt.",
            count,
        )
        if found.is_capped:
            lead = _("The newest %(number)s retrying tasks, grouped. Older ones are not shown.")
        message = _part("example", request, longest=LONGEST_MESSAGE)
        return Table(
            key="taskqueue-retried",
            table_id="taskqueue-retrying",
            title=_("Waiting for a retry"),
            lead=lead % {"number": count},
            columns=[
                Column(
                    title=_("Task"), css="taskqueue-group",
                    show=lambda group: breakable(group.name),
                ),
                self._tasks(),
                Column(title=_("Next attempt"), show=lambda group: moment(group.next_at)),
                Column(
                    title=_("Latest error"),
                    css="taskqueue-message",
                    show=lambda group: format_html(
                        '<span class="taskqueue-error-class">{}</span> {}',
                        breakable(group.example_error or ""),
                        message(group),
                    ),
                ),
                _acts(request, OF_RETRYING, lambda group: group.example_error or ""),
            ],
            rows=found.groups,
            empty=_("No tasks are waiting for a retry."),
        )  # fmt: skip

    def _acts_of_failed(self, request: HttpRequest, *, is_capped: bool) -> Column:
        """Return the verbs on the tasks that belong to no workflow, and a link to the workflows."""
        offered, no_error = _offered(OF_FAILED, request.user), _("no error class")
        url = self.links.failed_workflows if request.user.has_perm(VIEW_WORKFLOWS) else ""

        def acts(group: FailureGroup) -> list[tuple[TaskVerb, Any]]:
            some = group.count - group.in_workflows
            if is_capped or not group.in_workflows:
                return offered
            counts = {"some": localize(some), "all": localize(group.count)}
            return [(verb, OF_SOME[verb.name] % counts) for verb, _title in offered if some]

        return Column(
            title=_("Actions"),
            is_quiet=True,
            show=lambda group: _part(
                "acts", request, acts=acts(group), error=group.error_class or no_error,
                workflows_url=url if group.in_workflows else "",
            )(group),
        )  # fmt: skip

    def _tasks(self) -> Column:
        return Column(
            title=_("Tasks"),
            is_number=True,
            show=lambda group: self.links.to_list(Task, localize(group.count), q=group.q),
        )


def _part(template: str, request: HttpRequest, **context: Any) -> Show:
    return part(f"admin/taskqueue/failure/{template}.html", request, "group", **context)


def _acts(request: HttpRequest, titles: dict[str, Any], error_of: Show) -> Column:
    """Return the column of links that begin a verb on a whole group."""
    offered = _offered(titles, request.user)
    return Column(
        title=_("Actions"),
        is_quiet=True,
        show=lambda group: _part("acts", request, acts=offered, error=error_of(group))(group),
    )


def _windows(text: str) -> list[dict[str, Any]]:
    """Return a link for each window of time."""
    return [
        {"title": title, "url": f"?{urlencode({'since': each})}", "is_current": each == text}
        for each, title in WINDOWS.items()
    ]


def _offered(titles: dict[str, Any], user: Any) -> list[tuple[TaskVerb, Any]]:
    """Return the verbs that the user may use, with their titles."""
    return [(TASK_VERBS[name], titles[name]) for name in titles if TASK_VERBS[name].is_for(user)]
