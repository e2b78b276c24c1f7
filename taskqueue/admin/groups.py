"""The page of groups of collected events, with a button that enqueues a group's events."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.admin.acts import LONGEST_NAME, reason_of, tell_errors
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.denied import Denied
from taskqueue.admin.links import back
from taskqueue.admin.refusals import refused
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.subjects import subject_link
from taskqueue.admin.tables import Column, Table, part
from taskqueue.display import EMPTY
from taskqueue.engine.batches.collecting import LONGEST_GROUP
from taskqueue.engine.verbs import GROUP_VERBS
from taskqueue.exceptions import TaskQueueError
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.read_models.group import read_groups
from taskqueue.monitoring.reading import now

MOST_GROUPS = 500
FIRE = GROUP_VERBS["fire"]


class FireForm(forms.Form):
    """The fields that the button of a group posts, besides the reason."""

    name = forms.CharField(max_length=LONGEST_NAME, strip=False)
    group = forms.CharField(max_length=LONGEST_GROUP, strip=False, required=False)


class GroupsPage(ReadOnlyAdmin):
    """A page for users who may view tasks. Events are not shown: they are arguments."""

    groups_template = "admin/taskqueue/queue/groups.html"

    def groups_view(self, request: HttpRequest) -> HttpResponse:
        """Show the groups, or on POST enqueue the events of one of them."""
        if not request.user.has_perm(VIEW_TASKS):
            raise Denied(VIEW_TASKS)
        if request.method == "POST":
            return self._fire(request)
        if request.method not in LOOKING:
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        text = request.GET.get("q", "").strip()
        groups = read_groups(name=text, limit=MOST_GROUPS)
        table = Table(
            key="taskqueue-title",
            table_id="taskqueue-groups",
            title=_("Groups of %(name)s") % {"name": text} if text else _("All groups"),
            columns=self._columns(request),
            rows=groups,
            empty=_("No events wait to become a task."),
            note=_("Only the first groups are listed.") if len(groups) == MOST_GROUPS else "",
        )
        return report(
            self, request, self.groups_template, _("Collected events"),
            tables=[table], text=text, search_label=_("Definition"),
        )  # fmt: skip

    def _columns(self, request: HttpRequest) -> list[Column]:
        at = now()
        columns = [
            Column(
                title=_("Definition"),
                show=lambda group: subject_link(self.links, "definition", group.name),
            ),
            Column(title=_("Group"), show=lambda group: group.group or EMPTY),
            Column(title=_("Events"), show=lambda group: group.events, is_number=True),
            Column(
                title=_("Oldest"),
                show=lambda group: short_duration((at - group.oldest_at).total_seconds()),
                is_number=True,
            ),
        ]
        if FIRE.is_for(request.user):
            here = request.get_full_path()
            act = part("admin/taskqueue/queue/fire.html", request, "group", verb=FIRE, here=here)
            columns.append(Column(title=_("Actions"), show=act, is_quiet=True))
        return columns

    def _fire(self, request: HttpRequest) -> HttpResponse:
        if not FIRE.is_for(request.user):
            raise Denied(*FIRE.permissions)
        form = FireForm(request.POST)
        if form.is_valid():
            self._enqueue(request, **form.cleaned_data)
        tell_errors(self, request, form)
        return back(request, self.links.url("queue_groups"))

    def _enqueue(self, request: HttpRequest, name: str, group: str) -> None:
        """Enqueue the events, and show a message.

        The audit records it; there is no row for the history.
        """
        arguments: dict[str, Any] = {"group": group, "reason": reason_of(request)}
        try:
            FIRE.act_by(request.user, name, **arguments)
        except TaskQueueError as error:
            self.message_user(request, refused(error), messages.ERROR)
        else:
            self.message_user(request, FIRE.told(name), messages.SUCCESS)
