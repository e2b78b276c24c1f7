"""Workers: the list, the page of one with its attempts, and buttons to quiet, stop and kill."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import BooleanField, OuterRef, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from taskqueue import control
from taskqueue.admin.acts import ActsAdmin, reason_of, tell_errors
from taskqueue.admin.confirming import Question, confirm
from taskqueue.admin.denied import Denied
from taskqueue.admin.links import back
from taskqueue.admin.reports import RowReportAdmin, live_report, report
from taskqueue.declarations.serving import LONGEST_TEXT, MOST_CONCURRENCY
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.control.worker_verbs import WORKER_VERBS
from taskqueue.models import Lease, Task, Worker
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.read_models.worker import (
    ACTIVE,
    DRAINING,
    QUIET,
    ShownWorker,
    read_workers,
    worker_named,
)

# Each verb, with the states in which it can still be requested of a worker.
OFFERED = [
    (WORKER_VERBS["quiet"], (ACTIVE,)),
    (WORKER_VERBS["resume"], (QUIET,)),
    (WORKER_VERBS["stop"], (ACTIVE, QUIET)),
    (WORKER_VERBS["kill"], (ACTIVE, QUIET, DRAINING)),
]
MOST_WORKERS, MOST_PAST = 200, 20
# The most slots that are shown, and attempts that are read for them, including claimed-ahead ones.
MOST_SLOTS, MOST_HELD = 64, 500
# The most attempts of all workers that are searched for those of one, which have no index.
NEWEST = 10_000
COLUMNS = (
    "task_id", "attempt", "status", "claimed_at", "started_at", "finished_at", "progress",
    "progress_message", "progress_detail", "stop_requested_at", "wedged_at", "error_class",
)  # fmt: skip
# The condition of the index of running attempts, written literally for SQLite.
IS_RUNNING = "taskqueue_lease.status = 'running'"


class ChangeForm(forms.Form):
    """The fields that change a worker's slots and queues, besides the reason."""

    concurrency = forms.IntegerField(
        label=gettext_lazy("Slots"), required=False, min_value=1, max_value=MOST_CONCURRENCY
    )
    queues = forms.CharField(required=False, max_length=LONGEST_TEXT)
    strict = forms.BooleanField(required=False)
    definition_slots = forms.CharField(required=False, max_length=LONGEST_TEXT)


class WorkerAdmin(ActsAdmin, RowReportAdmin):
    """A worker counts as alive if it was seen within its lease, by the database's clock."""

    list_template = "admin/taskqueue/worker/change_list.html"
    routes = (("<int:object_id>/act/", "act"), ("resume/", "resume_all"))
    page_template = "admin/taskqueue/worker/page.html"
    live_template = "admin/taskqueue/worker/live.html"

    class Media:
        css = {"all": ["taskqueue/pages.css"]}
        js = ["taskqueue/refresh.js", "taskqueue/dashboard.js"]

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Show all workers, or those whose name or host contains the search text.

        A worker that stopped too long ago to be listed is found by its full name.
        """
        text = request.GET.get("q", "").strip()
        workers = read_workers(limit=MOST_WORKERS)
        workers = [worker for worker in workers if text in worker.name or text in worker.host]
        if text and not workers and is_storable(text):
            older = Worker.objects.using(database_alias()).filter(name=text).first()
            if older is not None:
                return self.links.redirect("worker_change", older.pk)
        return report(
            self, request, self.list_template, _("Workers"),
            living=[worker for worker in workers if worker.is_alive],
            gone=[worker for worker in workers if not worker.is_alive],
            text=text,
            has_quiet=any(worker.is_alive and worker.request == QUIET for worker in workers),
            offered=offered_to(request.user),
        )  # fmt: skip

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Show the page of a worker, whose slots are kept up to date."""
        worker = worker_named(row.name)
        if worker is None:  # Its retention has just deleted it.
            raise Http404
        sees_leases = request.user.has_perm("taskqueue.view_lease")
        stop = TASK_VERBS["stop"]
        return live_report(
            self, request, (self.page_template, self.live_template), worker.name,
            worker=worker,
            **(_slots(worker) if sees_leases else {"slots": None}),
            past=_past(worker.name) if sees_leases else None,
            looked_through=NEWEST,
            offered=offered_to(request.user),
            change=WORKER_VERBS["change"],
            most_concurrency=MOST_CONCURRENCY,
            stop=stop if stop.is_for(request.user) else None,
        )  # fmt: skip

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Handle a button of a list or a page; before a kill, ask for confirmation."""
        _check_may_stop(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        worker = self.row(str(object_id))
        if worker is None:
            self.message_user(request, _("There is no such worker any more."), messages.ERROR)
            return back(request, self.links.url("worker_changelist"))
        name = request.POST.get("verb", "")
        verb = WORKER_VERBS.get(name)
        if verb is None:
            refusal = _("A worker cannot be asked for “%(verb)s”.") % {"verb": name}
            self.message_user(request, refusal, messages.ERROR)
        elif verb.is_grave and not request.POST.get("confirmed"):
            return confirm(self, request, self._about_killing(worker))
        elif verb.name == "change":
            self._change(request, verb, worker)
        else:
            self.act(request, verb, worker)
        return back(request, self.links.url("worker_change", worker.pk))

    def _about_killing(self, worker: Worker) -> Question:
        told = _(
            "%(name)s (host %(host)s, process %(pid)s) will be killed now. The tasks that it runs "
            "are interrupted, and other workers run them again from the beginning."
        )
        named = {"name": worker.name, "host": worker.host, "pid": worker.pid}
        return Question(
            title=_("Kill %(worker)s?") % {"worker": worker.name},
            crumb=str(WORKER_VERBS["kill"].label),
            subject=worker.name,
            about=[told % named],
            url=self.links.url("worker_act", worker.pk),
            hidden=[("verb", "kill"), ("confirmed", "yes")],
            button=_("Kill worker"),
            back=self.links.url("worker_change", worker.pk),
        )

    def _change(self, request: HttpRequest, verb: Verb, worker: Worker) -> None:
        """Run the verb with the fields that differ from what the worker has or will have."""
        form, shown = ChangeForm(request.POST), worker_named(worker.name)
        if shown is None or not form.is_valid():
            tell_errors(self, request, form)
            return
        given = form.cleaned_data
        if given["concurrency"] is None:
            del given["concurrency"]
        changes = {
            name: value
            for name, value in given.items()
            if value != getattr(shown, f"wanted_{name}")
        }
        self.act(request, verb, worker, **changes)

    def resume_all_view(self, request: HttpRequest) -> HttpResponse:
        """Handle the button of the list that resumes every quiet worker."""
        _check_may_stop(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        everyone = control.WorkerFilter(everyone=True)
        names = control.resume_workers(everyone, by=request.user, reason=reason_of(request))
        for worker in Worker.objects.using(database_alias()).filter(name__in=names):
            self.note(request, worker, WORKER_VERBS["resume"].told(worker.name))
        if names:
            summary = ngettext(
                "%(count)s worker is asked to claim tasks again.",
                "%(count)s workers are asked to claim tasks again.",
                len(names),
            )
            self.message_user(request, summary % {"count": len(names)}, messages.SUCCESS)
        else:
            self.message_user(request, _("No worker is quiet."), messages.WARNING)
        return back(request, self.links.url("worker_changelist"))

    def tell(self, request: HttpRequest, verb: Verb, row: Worker) -> None:
        """Show that it was requested, or that this or a stronger request was made before."""
        if verb.name == "change":
            super().tell(request, verb, row)
            return
        asked = Worker.objects.using(database_alias()).filter(pk=row.pk, request=verb.name)
        if verb.name == "resume" or (verb.name != row.request and asked.exists()):
            super().tell(request, verb, row)
            return
        told = _("Worker %(worker)s has been asked for this, or for more, already.")
        self.message_user(request, told % {"worker": row.name}, messages.WARNING)


def _check_may_stop(request: HttpRequest) -> None:
    """Raise PermissionDenied if the user may not ask workers to be quiet or to end."""
    stop = WORKER_VERBS["stop"]
    if not stop.is_for(request.user):
        raise Denied(*stop.permissions)


def offered_to(user: Any) -> list[tuple[Verb, tuple[str, ...]]]:
    """Return the verbs that the user may request of workers, each with the states that allow it."""
    return OFFERED if WORKER_VERBS["stop"].is_for(user) else []


def _attempts(worker: str) -> QuerySet[Any]:
    """Return its attempts with the names of their tasks, which may have been pruned."""
    tasks = Task.objects.filter(id=OuterRef("task_id"))
    return (
        Lease.objects.using(database_alias())
        .filter(worker_id=worker)
        .only(*COLUMNS)
        .annotate(now=DatabaseClock(), task_name=Subquery(tasks.values("name")))
    )


def _slots(worker: ShownWorker) -> dict[str, Any]:
    """Return what runs in each slot, longest first, None for a free slot; and the waiting tasks.

    A worker claims more than it runs, so as not to wait for the next task.
    """
    held = list(_held(worker.name))
    running = [lease for lease in held if lease.started_at is not None]
    claimed = [lease for lease in held if lease.started_at is None]
    slots = max(worker.slots, len(running)) if worker.is_alive else len(running)
    free = max(0, min(slots, MOST_SLOTS) - len(running))
    return {
        "slots": [*running, *[None] * free][:MOST_SLOTS],
        "more_slots": max(0, slots - MOST_SLOTS),
        "claimed": claimed,
    }


def _held(worker: str) -> QuerySet[Any]:
    """Return the attempts that it holds, longest first."""
    is_running = RawSQL(IS_RUNNING, (), output_field=BooleanField())  # noqa: S611  (a constant)
    return _attempts(worker).filter(is_running).order_by("started_at", "id")[:MOST_HELD]


def _past(worker: str) -> QuerySet[Any]:
    """Return its finished attempts among the newest attempts of all workers."""
    newest = Lease.objects.using(database_alias()).order_by("-id").values_list("id", flat=True)
    ended = _attempts(worker).filter(finished_at__isnull=False)
    return ended.filter(id__gt=(newest.first() or 0) - NEWEST).order_by("-id")[:MOST_PAST]
