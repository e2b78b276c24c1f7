"""The page of one workflow: its graph, steps, attempts and details; and the verbs on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES, VIEW_TASKS
from taskqueue.admin.acts import noted
from taskqueue.admin.reports import LOOKING, live_report, report
from taskqueue.admin.tasks.pages import folded_json, sentence
from taskqueue.admin.workflows.chart import chart_of
from taskqueue.admin.workflows.forms import verb_form
from taskqueue.admin.workflows.lists import WorkflowList, progress_bar, state_of
from taskqueue.core.workflow_states import StepStatus
from taskqueue.declarations.workflows.drawing import Picture, svg
from taskqueue.display import WORDS, number
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.workflows.pictures import picture_of_workflow
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS, WorkflowVerb
from taskqueue.exceptions import TaskQueueError, WorkflowDoesNotExist
from taskqueue.models import Workflow
from taskqueue.monitoring.read_models.step import members_of, shown_members, steps_of
from taskqueue.monitoring.read_models.workflow import MOST_STEPS, WorkflowHistory, workflow_history
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.why.workflows import why_workflow
from taskqueue.results.workflows import row_of

# Tasks of the chosen step that the page shows.
MOST_MEMBERS = 100


class WorkflowAdmin(WorkflowList):
    """Shows workflows to who may view them; does verbs to them for who may do these."""

    page_template = "admin/taskqueue/workflow/page.html"
    fragment_template = "admin/taskqueue/workflow/fragment.html"
    act_template = "admin/taskqueue/workflow/act.html"
    routes = (("<uuid:object_id>/act/", "act"),)

    class Media:
        css = {
            "all": [
                "taskqueue/pages.css", "taskqueue/task.css", "taskqueue/graph.css",
                "taskqueue/workflow.css",
            ]
        }  # fmt: skip
        js = ["taskqueue/refresh.js"]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page; it changes nothing."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        row = _found(object_id)
        templates = (self.page_template, self.fragment_template)
        return live_report(self, request, templates, row.name, **self._page(request, row))

    def _page(self, request: HttpRequest, row: Workflow) -> dict[str, Any]:
        shown, may = workflow_history(row, request.user), request.user.has_perm
        picture = picture_of_workflow(row)
        return {
            "workflow": shown,
            "original": row,
            "state": state_of(row),
            "progress": progress_bar(shown),
            "reasons": [sentence(reason) for reason in why_workflow(row)],
            "graph": drawn(picture, row),
            "has_more_steps": shown.total_steps > MOST_STEPS,
            "members": self._members(request, row) if may(VIEW_TASKS) else None,
            "chart": chart_of(row, now()) if may(VIEW_LEASES) and may(VIEW_TASKS) else None,
            "values": values_of(shown),
            "audit": shown.audit if may(VIEW_AUDITS) else None,
            "may_act": any(verb.is_for(request.user) for verb in WORKFLOW_VERBS.values()),
            "verbs": [WORKFLOW_VERBS[name] for name in shown.can],
        }

    def _members(self, request: HttpRequest, row: Workflow) -> dict[str, Any] | None:
        """Return the tasks of the step that the address names, those without success first."""
        name = request.GET.get("step", "")
        step = steps_of(row.pk).filter(name=name).first() if is_storable(name) else None
        if step is None:
            return None
        found = members_of(step)
        failed = list(found.filter(task__status__in=["failed", "cancelled"])[:MOST_MEMBERS])
        others = found.exclude(task__status__in=["failed", "cancelled"])
        rows = [*failed, *others[: MOST_MEMBERS - len(failed)]]
        return {
            "step": step.name,
            "tasks": shown_members(rows),
            "has_more": step.released > len(rows),
        }

    def act_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """The form of a verb, and its button; a button of the page posts to it at once."""
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        row = _found(object_id) if self.has_view_permission(request) else None
        given = request.POST if request.method == "POST" else request.GET
        verb = WORKFLOW_VERBS.get(given.get("verb", ""))
        if row is None or not any(each.is_for(request.user) for each in WORKFLOW_VERBS.values()):
            raise PermissionDenied
        if verb is None:
            raise Http404("There is no such verb.")
        if not verb.is_for(request.user):
            raise PermissionDenied
        is_sent = request.method == "POST" and (
            "confirmed" in request.POST or not (verb.is_grave or verb.parameters)
        )
        form = verb_form(verb, row, request.POST if is_sent else None)
        if is_sent and form.is_valid():
            return self._act(request, verb, row, dict(form.cleaned_data))
        return report(
            self, request, self.act_template,
            f"{verb.label}: {row.name}",
            verb=verb, workflow=row, form=form,
        )  # fmt: skip

    def _act(
        self, request: HttpRequest, verb: WorkflowVerb, row: Workflow, given: dict[str, Any]
    ) -> HttpResponse:
        """Do it, and tell so or why not."""
        try:
            result = verb.act_by(request.user, row.pk, **given)
        except TaskQueueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return self.links.redirect("workflow_change", row.pk)
        told = verb.told(row.name)
        self.log_change(request, row, noted(told, given["reason"]))
        self.message_user(request, told, messages.SUCCESS)
        if verb.name == "delete" and result:
            return self.links.redirect("workflow_changelist")
        return self.links.redirect("workflow_change", row.pk)


def drawn(picture: Picture, row: Workflow) -> SafeString:
    """Draw the graph; a step leads to its tasks."""
    steps = ngettext("%(count)s step", "%(count)s steps", picture.steps)
    counts = ((status, count) for status, count in picture.counts.items() if count)
    return SafeString(
        svg(
            picture,
            title=_("Graph of workflow %(name)s") % {"name": row.name},
            description=f"{steps % {'count': number(picture.steps)}} ({in_words(counts)})",
            tooltip=lambda node: f"{node.name} ({in_words(node.shares or [(node.status, 1)])})",
            address=lambda node: (
                f"?{urlencode({'step': node.name})}#taskqueue-members" if node.steps == 1 else ""
            ),
        )
    )


def in_words(counts: Iterable[tuple[StepStatus, int]]) -> str:
    """Return how many there are of each status."""
    return ", ".join(f"{WORDS[status]} {number(count)}" for status, count in counts)


def values_of(shown: WorkflowHistory) -> list[tuple[str, SafeString]]:
    """Return the arguments, the context and the result, as far as there are any."""
    values = []
    if shown.args or shown.kwargs:
        call = {"args": shown.args, "kwargs": shown.kwargs}
        values.append((_("Arguments"), folded_json(call)))
    if shown.context:
        values.append((_("Context"), folded_json(shown.context)))
    if shown.return_value is not None:
        values.append((_("Return value"), folded_json(shown.return_value)))
    return values


def _found(key: object) -> Workflow:
    try:
        return row_of(str(key))
    except WorkflowDoesNotExist as error:
        raise Http404(str(error)) from None
