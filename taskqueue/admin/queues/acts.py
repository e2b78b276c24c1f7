"""The buttons of a queue, from the table of verbs; refusals are messages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext_lazy

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.links import back, name_from_path
from taskqueue.admin.reasons import ReasonField
from taskqueue.engine.connections import database_alias
from taskqueue.engine.verbs import QUEUE_VERBS
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Queue

LONGEST_PAUSE = 366 * 24 * 60
"""Minutes after which a pause that is to end by itself does so at the latest."""


class ActForm(forms.Form):
    """The fields that a button of a queue posts."""

    verb = forms.ChoiceField(choices=[(name, name) for name in QUEUE_VERBS])
    minutes = forms.IntegerField(
        label=gettext_lazy("Minutes"), required=False, min_value=1, max_value=LONGEST_PAUSE
    )
    reason = ReasonField()


class QueueActs(ReadOnlyAdmin):
    """Pause and resume by the queue's name, for those who may control queues."""

    def has_control_permission(self, request: HttpRequest) -> bool:
        """Whether they may pause and resume."""
        return QUEUE_VERBS["pause"].is_for(request.user)

    def act_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """A button of a list or a page."""
        if not self.has_control_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        queue = name_from_path(name)
        form = ActForm(request.POST)
        if form.is_valid():
            self._act(request, queue, form.cleaned_data)
        else:
            for field, errors in form.errors.items():
                self.message_user(request, f"{field}: {' '.join(map(str, errors))}", messages.ERROR)
        return back(request, self.links.queue_url(queue))

    def _act(self, request: HttpRequest, name: str, given: dict[str, Any]) -> None:
        verb, arguments = QUEUE_VERBS[given["verb"]], {}
        if verb.name == "pause" and given["minutes"] is not None:
            arguments["until"] = timedelta(minutes=given["minutes"])
        try:
            verb.act_by(request.user, name, reason=given["reason"], **arguments)
        except TaskQueueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        told = verb.told(name)
        self._note(request, name, told + (f" ({given['reason']})" if given["reason"] else ""))
        self.message_user(request, told, messages.SUCCESS)

    def _note(self, request: HttpRequest, name: str, what: str) -> None:
        """Keep it in the admin's own history too."""
        queue = Queue.objects.using(database_alias()).filter(name=name).first()
        if queue is not None:
            self.log_change(request, queue, what)
