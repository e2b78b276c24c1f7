"""The page of one workflow: its graph, steps, attempts and details, and the verbs on it."""

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
from taskqueue.admin.audit import entry_words
from taskqueue.admin.confirming import Question, confirm, subject_of
from taskqueue.admin.denied import Denied
from taskqueue.admin.links import Links
from taskqueue.admin.refusals import refused
from taskqueue.admin.reports import LOOKING, live_report
from taskqueue.admin.signals import SignalAdmin
from taskqueue.admin.tasks.formatting import folded_json
from taskqueue.admin.tasks.pages import shown_value
from taskqueue.admin.workflows.chart import chart_of
from taskqueue.admin.workflows.forms import verb_form
from taskqueue.admin.workflows.lists import WorkflowList, progress_bar, state_of
from taskqueue.admin.workflows.steps import chosen_step, step_table
from taskqueue.core.workflow_states import StepStatus, WorkflowStatus
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.declarations.workflows.drawing import BAR, SIGNS, Node, Picture, svg, title_of
from taskqueue.display import WORDS, labelled, number
from taskqueue.engine.connections import database_alias
from taskqueue.engine.workflows.pictures import picture_of_workflow
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS, WorkflowVerb
from taskqueue.exceptions import TaskQueueError, WorkflowDoesNotExist
from taskqueue.models import Audit, Task, Workflow
from taskqueue.monitoring.read_models.workflow import (
    MOST_ENTRIES,
    ShownWorkflow,
    shown_workflow,
)
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.why.reasons import Reason, because
from taskqueue.monitoring.why.workflows import why_workflow
from taskqueue.reason_words import detail_words, reason_words, sentence_of
from taskqueue.results.workflows import row_of


class WorkflowAdmin(SignalAdmin, WorkflowList):
    """Shows workflows to users who may view them, with the verbs that the user may use."""

    page_template = "admin/taskqueue/workflow/page.html"
    fragment_template = "admin/taskqueue/workflow/fragment.html"
    routes = (("<uuid:object_id>/act/", "act"), ("<uuid:object_id>/stream/", "stream"))

    class Media:
        css = {
            "all": [
                "taskqueue/charts.css", "taskqueue/pages.css", "taskqueue/task.css",
                "taskqueue/graph.css", "taskqueue/workflow.css",
            ]
        }  # fmt: skip
        js = ["taskqueue/refresh.js", "taskqueue/workflow.js"]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the page, which changes nothing."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        row = _found(object_id)
        templates = (self.page_template, self.fragment_template)
        context = self._page(request, row)
        context["stream_url"] = self.stream_url(request, row.pk)
        return live_report(self, request, templates, row.name, **context)

    def events_of(self, object_id: UUID | None) -> EventFilter:
        return EventFilter.of(("workflow.*", "step.*", "task.*"), workflow=object_id)

    def _page(self, request: HttpRequest, row: Workflow) -> dict[str, Any]:
        shown, may = shown_workflow(row, request.user), request.user.has_perm
        moment = now()
        picture = picture_of_workflow(row)
        may_view = may(VIEW_LEASES) and may(VIEW_TASKS)
        return {
            "workflow": shown,
            "original": row,
            "state": state_of(row),
            "progress": progress_bar(shown),
            "reasons": [told(reason, self.links) for reason in reasons_of(row)],
            "failed_task": failed_task(shown) if may(VIEW_TASKS) else None,
            "graph": drawn(picture, row),
            "legend": legend_of(picture),
            "arrows": {link.when.value for link in picture.links},
            "table": step_table(request, row, shown.step_counts, moment),
            "chosen": chosen_step(request, row),
            "chart": chart_of(row, moment) if may_view else None,
            "values": values_of(shown),
            "audit": entries_of(row) if may(VIEW_AUDITS) else None,
            "may_act": any(verb.is_for(request.user) for verb in WORKFLOW_VERBS.values()),
            "verbs": [WORKFLOW_VERBS[name] for name in shown.can],
            "can": shown.can,
        }

    def act_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """Show the form of a verb, or handle its button; a button of the page posts directly."""
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        row = _found(object_id) if self.has_view_permission(request) else None
        given = request.POST if request.method == "POST" else request.GET
        verb = WORKFLOW_VERBS.get(given.get("verb", ""))
        if row is None or not any(each.is_for(request.user) for each in WORKFLOW_VERBS.values()):
            raise Denied(*self.needed_to_view, *(verb.permissions if verb else ()))
        if verb is None:
            raise Http404("There is no such verb.")
        if not verb.is_for(request.user):
            raise Denied(*verb.permissions)
        is_sent = request.method == "POST" and (
            "confirmed" in request.POST or not (verb.is_grave or verb.parameters)
        )
        form = verb_form(verb, row, request.POST if is_sent else None, initial=given.dict())
        if is_sent and form.is_valid():
            return self._act(request, verb, row, dict(form.cleaned_data))
        question = Question(
            title=labelled(verb.label, row.name),
            crumb=str(verb.label),
            subject=row.name,
            about=[subject_of(row.status, row.name, row.pk), *filter(None, [verb.effect])],
            url=self.links.url("workflow_act", row.pk),
            hidden=[("verb", verb.name), ("confirmed", "yes")],
            button=str(verb.label),
            is_grave=verb.is_grave,
            back=self.links.url("workflow_change", row.pk),
        )
        return confirm(self, request, question, form=form)

    def _act(
        self, request: HttpRequest, verb: WorkflowVerb, row: Workflow, given: dict[str, Any]
    ) -> HttpResponse:
        """Run the verb, and show a message about the result."""
        try:
            result = verb.act_by(request.user, row.pk, **given)
        except TaskQueueError as error:
            self.message_user(request, refused(error), messages.ERROR)
            return self.links.redirect("workflow_change", row.pk)
        told = verb.told(row.name)
        self.log_change(request, row, noted(told, given["reason"]))
        self.message_user(request, told, messages.SUCCESS)
        if verb.name == "delete" and result:
            return self.links.redirect("workflow_changelist")
        return self.links.redirect("workflow_change", row.pk)


def reasons_of(row: Workflow) -> list[Reason]:
    """Return why it makes no progress; the page shows the error of a failed one separately."""
    if row.status == WorkflowStatus.FAILED and row.error:
        return [because("workflow_failed", moment=row.finished_at)]
    return why_workflow(row)


def told(reason: Reason, links: Links) -> SafeString:
    """Return the reason as a sentence, with links to the task or workflow that it names."""
    models = {"task": Task, "workflow": Workflow}
    named = {str(reason.details[name]): models[name] for name in models.keys() & reason.details}

    def show(value: Any) -> Any:
        model = named.get(value) if isinstance(value, str) else None
        return shown_value(value) if model is None else links.to_row(model, value, value)

    return sentence_of(reason, show)


def failed_task(shown: ShownWorkflow) -> UUID | None:
    """Return the task from which the workflow's error came, unless it was pruned."""
    key = shown.error.task_id if shown.error is not None else None
    if key is None:
        return None
    return key if Task.objects.using(database_alias()).filter(pk=key).exists() else None


def entries_of(row: Workflow) -> list[tuple[Audit, Any, str, str]]:
    """Return the first audit entries, with their verbs, details and reasons in words."""
    entries = Audit.objects.using(database_alias()).filter(noun="workflow", subject=str(row.pk))
    first = entries.order_by("id")[:MOST_ENTRIES]
    return [
        (entry, entry_words(entry), detail_words(entry.detail), reason_words(entry.reason))
        for entry in first
    ]


def drawn(picture: Picture, row: Workflow) -> SafeString:
    """Draw the graph. A step links to its tasks; several of one definition to their rows."""
    steps = ngettext("%(count)s step", "%(count)s steps", picture.steps)
    counts = ((status, count) for status, count in picture.counts.items() if count)
    return SafeString(
        svg(
            picture,
            title=_("Graph of workflow %(name)s") % {"name": row.name},
            description=f"{steps % {'count': number(picture.steps)}} ({in_words(counts)})",
            tooltip=tooltip,
            address=address,
            word=lambda word: {"steps": _("steps"), "join": _("join")}[word],
        )
    )


def tooltip(node: Node) -> str:
    """Describe the node: what it is, what it runs, and its status."""
    name = node.name if node.steps == 1 else title_of(node, lambda word: _("steps"))
    runs = f", {node.calls}" if node.calls else ""
    statuses = in_words(node.shares) if node.shares else WORDS[node.status]
    return labelled(f"{name}{runs}", statuses)


def address(node: Node) -> str:
    """Return the link of a node; empty for steps of several definitions."""
    if node.steps == 1:
        return f"?{urlencode({'step': node.name})}#taskqueue-members"
    return f"?{urlencode({'runs': node.calls})}#taskqueue-steps" if node.calls else ""


def legend_of(picture: Picture) -> list[tuple[StepStatus, str, int]]:
    """Return the statuses that the steps have, with their signs and counts."""
    return [(each, SIGNS[each], picture.counts[each]) for each in BAR if picture.counts.get(each)]


def in_words(counts: Iterable[tuple[StepStatus, int]]) -> str:
    """Describe how many there are of each status."""
    return ", ".join(f"{WORDS[status]} {number(count)}" for status, count in counts)


def values_of(shown: ShownWorkflow) -> list[tuple[str, SafeString]]:
    """Return the arguments, the context and the result, if there are any."""
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
        raise Http404(refused(error)) from None
