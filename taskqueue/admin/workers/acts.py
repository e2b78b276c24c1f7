"""The buttons of workers, from the table of verbs; refusals are messages."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue import control
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.filters import row_id
from taskqueue.admin.links import back
from taskqueue.admin.reasons import reason_of
from taskqueue.admin.reports import report
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.verbs import WORKER_VERBS
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Worker


class WorkerActs(ReadOnlyAdmin):
    """Requests to one worker, for those who may stop."""

    kill_template = "admin/taskqueue/worker/kill.html"

    def has_stop_permission(self, request: HttpRequest) -> bool:
        """Whether they may ask workers to be quiet or to end."""
        return WORKER_VERBS["stop"].is_for(request.user)

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """A button of a list or a page; before a kill it asks once more."""
        if not self.has_stop_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        rows = Worker.objects.using(database_alias())
        worker = rows.filter(pk=object_id).first() if row_id(str(object_id)) is not None else None
        if worker is None:
            self.message_user(request, _("There is no such worker any more."), messages.ERROR)
            return back(request, self.links.url("worker_changelist"))
        name = request.POST.get("verb", "")
        verb = WORKER_VERBS.get(name)
        if verb is None:
            refusal = _("A worker cannot be asked for “%(verb)s”.") % {"verb": name}
            self.message_user(request, refusal, messages.ERROR)
        elif verb.is_grave and not request.POST.get("confirmed"):
            return self._ask_before_killing(request, worker)
        else:
            self._act(request, verb, worker)
        return back(request, self.links.url("worker_change", worker.pk))

    def resume_all_view(self, request: HttpRequest) -> HttpResponse:
        """The button of the list that resumes every quiet worker."""
        if not self.has_stop_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        reason = reason_of(request)
        everyone = control.WorkerFilter(everyone=True)
        names = control.resume_workers(everyone, by=request.user, reason=reason)
        for worker in Worker.objects.using(database_alias()).filter(name__in=names):
            said = WORKER_VERBS["resume"].told(worker.name)
            self.log_change(request, worker, said + (f" ({reason})" if reason else ""))
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

    def _act(self, request: HttpRequest, verb: Verb, worker: Worker) -> None:
        reason = reason_of(request)
        try:
            verb.act_by(request.user, worker.name, reason=reason)
        except TaskQueueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        asked = Worker.objects.using(database_alias()).filter(pk=worker.pk, request=verb.name)
        if verb.name != "resume" and (verb.name == worker.request or not asked.exists()):
            told = _("Worker %(worker)s has been asked for this, or for more, already.")
            self.message_user(request, told % {"worker": worker.name}, messages.WARNING)
            return
        told = verb.told(worker.name)
        self.log_change(request, worker, told + (f" ({reason})" if reason else ""))
        self.message_user(request, told, messages.SUCCESS)

    def _ask_before_killing(self, request: HttpRequest, worker: Worker) -> HttpResponse:
        return report(
            self,
            request,
            self.kill_template,
            _("Kill %(worker)s?") % {"worker": worker.name},
            worker=worker,
            reason=reason_of(request),
            next=request.POST.get("next", ""),
        )
