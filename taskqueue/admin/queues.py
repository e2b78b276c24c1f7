"""Queues: the list, the page of a queue with its figures, and buttons to pause and limit it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.admin.acts import ActsAdmin, reason_of, tell_errors
from taskqueue.admin.charts import outcomes_chart, times_chart
from taskqueue.admin.denied import Denied
from taskqueue.admin.depth_chart import depth_chart
from taskqueue.admin.groups import GroupsPage
from taskqueue.admin.links import back, finished_within
from taskqueue.admin.refusals import refused, translated
from taskqueue.admin.reports import RowReportAdmin, report, span_of, span_tabs
from taskqueue.declarations.limits import MOST_AT_ONCE
from taskqueue.declarations.rates import LONGEST_RATE
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.queue_verbs import ALL_VERBS, DEFINITION_VERBS, QUEUE_VERBS
from taskqueue.engine.control.unknown_names import unknown_queue
from taskqueue.engine.control.verb import Verb
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Queue
from taskqueue.monitoring.counts import CAP
from taskqueue.monitoring.depths import depths
from taskqueue.monitoring.durations import MINUTE
from taskqueue.monitoring.fairness import fairness_of, has_tenants
from taskqueue.monitoring.read_models.pause import pause_of, read_pauses
from taskqueue.monitoring.read_models.queue import read_queues
from taskqueue.monitoring.read_models.queue_details import queue_tasks
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.series import series

MOST_QUEUES, MOST_WORKERS = 500, 1000
# The most minutes after which a temporary pause ends.
LONGEST_PAUSE = 366 * 24 * 60


class ActForm(forms.Form):
    """The fields that a button of a queue posts, besides the reason."""

    verb = forms.ChoiceField(
        label=gettext_lazy("Action"), choices=[(name, name) for name in QUEUE_VERBS]
    )
    minutes = forms.IntegerField(
        label=gettext_lazy("Minutes"), required=False, min_value=1, max_value=LONGEST_PAUSE
    )
    concurrency = forms.IntegerField(
        label=gettext_lazy("Tasks at once"), required=False, min_value=1, max_value=MOST_AT_ONCE
    )
    rate = forms.CharField(
        label=gettext_lazy("Starts in a period"), required=False, max_length=LONGEST_RATE
    )
    lift = forms.BooleanField(required=False)

    def clean(self) -> Any:
        """Refuse a limit without numbers, unless the limit is being removed."""
        given = super().clean() or {}
        has_numbers = given.get("concurrency") is not None or bool(given.get("rate"))
        if given.get("verb") == "limit" and not self.errors and has_numbers == given["lift"]:
            raise forms.ValidationError(
                _("Enter how many tasks may run at once, or how many may start in a period.")
            )
        return given

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the verb."""
        given = self.cleaned_data
        if given["verb"] == "limit":
            return {"concurrency": given["concurrency"], "rate": given["rate"] or None}
        is_timed = given["verb"] == "pause" and given["minutes"] is not None
        return {"until": timedelta(minutes=given["minutes"])} if is_timed else {}


# By the values of the buttons, which differ from those of queues.
PAUSING = {f"{name}_definition": verb for name, verb in DEFINITION_VERBS.items()} | ALL_VERBS


# Verbs that accept any name.
HINTED = ("pause", "limit")


class PauseForm(ActForm):
    """The fields of the buttons for a definition or everything, besides the reason."""

    verb = forms.ChoiceField(
        label=gettext_lazy("Action"), choices=[(name, name) for name in PAUSING]
    )
    definition = forms.CharField(label=gettext_lazy("Definition"), required=False)


class QueueAdmin(GroupsPage, ActsAdmin, RowReportAdmin):
    """A queue has a row once a worker has seen it; before that it has a page by name."""

    list_template = "admin/taskqueue/queue/change_list.html"
    routes = (
        ("named/", "named"), ("pauses/", "pauses"), ("groups/", "groups"),
        ("<taskqueue_name:name>/act/", "act"),
    )  # fmt: skip
    page_template = "admin/taskqueue/queue/page.html"

    class Media:
        css = {"all": ["taskqueue/charts.css", "taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Show all queues, or those whose names contain the search text."""
        queues, text = read_queues(limit=MOST_QUEUES), request.GET.get("q", "").strip()
        return report(
            self, request, self.list_template, _("Queues"),
            queues=[queue for queue in queues if text in queue.name],
            text=text,
            is_cut=len(queues) == MOST_QUEUES,
            pauses=read_pauses(),
            pausing=[(name, PAUSING[name]) for name in ("pause_definition", "pause_all")],
            may_control=QUEUE_VERBS["pause"].is_for(request.user),
            longest_pause=LONGEST_PAUSE,
        )  # fmt: skip

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Show the page of a queue by its row."""
        return self._page(request, row.name, row)

    def named_view(self, request: HttpRequest) -> HttpResponse:
        """Show the page of a queue by its name."""
        self.check_look(request)
        name = request.GET.get("name", "")
        if not name or not is_storable(name):
            self.message_user(request, _("This is not a valid queue name."), messages.ERROR)
            return self.links.redirect("queue_changelist")
        return self._page(request, name, _row(name))

    def _page(self, request: HttpRequest, name: str, row: Queue | None) -> HttpResponse:
        workers = read_workers(limit=MOST_WORKERS)
        queues = read_queues(limit=MOST_QUEUES, workers=workers)
        span = span_of(request)
        steps = series(span, queue_name=name)
        kept = {"name": name} if "name" in request.GET else {}
        seconds = steps.step_seconds * len(steps.steps)
        sees_tasks = request.user.has_perm(VIEW_TASKS)
        tasks = finished_within(self.links, queue=name) if sees_tasks else None
        return report(
            self, request, self.page_template, name,
            queue=next((queue for queue in queues if queue.name == name), None),
            row=row,
            workers=[worker for worker in workers if worker.is_alive and worker.serves(name)],
            spans=span_tabs(span, **kept),
            counts=queue_tasks(name),
            counted=CAP,
            per_minute=steps.whole.ended * MINUTE / seconds,
            outcomes=outcomes_chart(steps, links=tasks),
            times=times_chart(steps, links=tasks),
            depth=depth_chart(depths(span, queue_name=name)),
            fairness=fairness_of(name) if has_tenants(name) else None,
            may_control=QUEUE_VERBS["pause"].is_for(request.user),
            delete=QUEUE_VERBS["delete"],
            longest_pause=LONGEST_PAUSE,
            most_at_once=MOST_AT_ONCE,
            longest_rate=LONGEST_RATE,
        )  # fmt: skip

    def pauses_view(self, request: HttpRequest) -> HttpResponse:
        """Handle buttons of the list that pause and resume a definition, or everything."""
        if not ALL_VERBS["pause_all"].is_for(request.user):
            raise Denied(*ALL_VERBS["pause_all"].permissions)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        # A button on a page whose form lacks the field names the definition in its address.
        named = {"definition": request.GET.get("definition", "")}
        form = PauseForm({**named, **request.POST.dict()})
        if form.is_valid():
            given = form.cleaned_data
            verb = PAUSING[given["verb"]]
            is_timed = verb.name.startswith("pause") and given["minutes"] is not None
            until = {"until": timedelta(minutes=given["minutes"])} if is_timed else {}
            self.pause(request, verb, given["definition"], **until)
        tell_errors(self, request, form)
        return back(request, self.links.url("queue_changelist"))

    def pause(self, request: HttpRequest, verb: Verb, name: str, **arguments: Any) -> None:
        """Run the verb, and show a message.

        The audit records it; there is no row for the history.
        """
        try:
            verb.act_by(request.user, name, reason=reason_of(request), **arguments)
        except TaskQueueError as error:
            self.message_user(request, refused(error), messages.ERROR)
        else:
            self.message_user(request, verb.told(name), messages.SUCCESS)
            if verb is PAUSING["pause_definition"] and (hint := pause_of(name).hint):
                self.message_user(request, translated(hint), messages.WARNING)

    def act_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Handle a button of a list or a page."""
        if not QUEUE_VERBS["pause"].is_for(request.user):
            raise Denied(*QUEUE_VERBS["pause"].permissions)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        form = ActForm(request.POST)
        if form.is_valid():
            verb = QUEUE_VERBS[form.cleaned_data["verb"]]
            is_done = self.act(request, verb, Queue(name=name), **form.arguments)
            if is_done and verb.name == "delete":
                return self.links.redirect("queue_changelist")
            hint = unknown_queue(project_connection(), name) if verb.name in HINTED else ""
            if is_done and hint:
                self.message_user(request, translated(hint), messages.WARNING)
        tell_errors(self, request, form)
        return back(request, self.links.queue_url(name))

    def note(self, request: HttpRequest, row: Queue, done: str) -> None:
        """Find the row by its name, because the first pause creates it."""
        super().note(request, _row(row.name) or row, done)


def _row(name: str) -> Queue | None:
    return Queue.objects.using(database_alias()).filter(name=name).first()
