"""Failures: failed and retrying tasks, in groups that can be acted on as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from taskqueue.admin.links import Links
from taskqueue.admin.reports import ReportAdmin, report
from taskqueue.display import breakable, moment
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.models import Task
from taskqueue.monitoring.read_models.failure_group import (
    FailureGroup,
    RetryingGroup,
    failures,
    retrying,
)

MOST_GROUPS = 100
LONGEST_EXAMPLE = 200


@dataclass(frozen=True)
class Act:
    """A link to the page that confirms an action on a whole group."""

    title: str
    url: str
    is_grave: bool = False


class FailureAdmin(ReportAdmin):
    """Two tables of groups, with links to their tasks and to bulk actions."""

    template = "admin/taskqueue/failure/change_list.html"

    class Media:
        css = {"all": ["taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        ended, coming = failures(limit=MOST_GROUPS), retrying(request.user, limit=MOST_GROUPS)
        return report(
            self,
            request,
            self.template,
            _("Failures"),
            ended=ended,
            failed_groups=[_failed(request, self.links, group) for group in ended.groups],
            coming=coming,
            retried_groups=[_retried(request, self.links, group) for group in coming.groups],
        )


def _failed(request: HttpRequest, links: Links, group: FailureGroup) -> dict[str, Any]:
    return {
        "error": group.error_class or _("no error class"),
        "shown_error": breakable(group.error_class or _("no error class")),
        "name": group.name,
        "shown_name": breakable(group.name),
        "count": group.count,
        "url": links.list_url(Task, q=group.q),
        "first_seen": moment(group.first_seen),
        "last_seen": moment(group.last_seen),
        "example": _example(links, group.example_id, group.example_message),
        "acts": _acts(request, links, group.q, "retry", "delete"),
    }


def _retried(request: HttpRequest, links: Links, group: RetryingGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "shown_name": breakable(group.name),
        "count": group.count,
        "url": links.list_url(Task, q=group.q),
        "next_at": moment(group.next_at),
        "error": group.example_error or "",
        "shown_error": breakable(group.example_error or ""),
        "example": _example(links, group.example_id, group.example_message),
        "acts": _acts(request, links, group.q, "run_now", "cancel"),
    }


def _example(links: Links, task_id: Any, message: str | None) -> SafeString:
    """The beginning of the newest message, or the id if it is hidden, as a link to its task."""
    if message is None:
        return links.to_row(Task, task_id, str(task_id))
    line = Truncator(" ".join(message.split())).chars(LONGEST_EXAMPLE)
    return links.to_row(Task, task_id, line or _("no message"))


def _acts(request: HttpRequest, links: Links, text: str, *verbs: str) -> list[Act]:
    """Return links for those of the verbs that the user may apply to a group."""
    titles = {
        "retry": _("Retry all"),
        "run_now": _("Run all now"),
        "cancel": _("Cancel all"),
        "delete": _("Delete all"),
    }
    start = links.url_if_any("operation_start")
    if not start:
        return []
    return [
        Act(
            titles[verb],
            f"{start}?{urlencode({'verb': verb, 'q': text})}",
            is_grave=TASK_VERBS[verb].is_grave,
        )
        for verb in verbs
        if TASK_VERBS[verb].is_for(request.user)
    ]
