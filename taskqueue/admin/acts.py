"""The buttons of queues, workers and schedules: each runs one verb, and refusals become messages.

The reason that people give for an action is stored in the audit and in the admin's own history.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ActionForm
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.refusals import refused
from taskqueue.declarations.payload import storable
from taskqueue.display import labelled
from taskqueue.engine.control.verb import Verb
from taskqueue.exceptions import RequestedBefore, TaskQueueError

LONGEST_NAME = 255


class ActsAdmin(ReadOnlyAdmin):
    """Runs verbs on one row, which is found by its name."""

    def act(self, request: HttpRequest, verb: Verb, row: Any, **arguments: Any) -> bool:
        """Run the verb, and show a message about the result. Return whether it was done."""
        try:
            self.do(request, verb, row.name, **arguments)
        except RequestedBefore:
            self.message_user(request, _("This was already done."), messages.WARNING)
            return True
        except TaskQueueError as error:
            self.message_user(request, refused(error), messages.ERROR)
            return False
        self.tell(request, verb, row)
        return True

    def do(self, request: HttpRequest, verb: Verb, key: Any, **arguments: Any) -> Any:
        """Run the verb, with the reason that was given."""
        return verb.act_by(request.user, key, reason=reason_of(request), **arguments)

    def tell(self, request: HttpRequest, verb: Verb, row: Any) -> None:
        """Show a message that it was done."""
        self.note(request, row, verb.told(row.name))
        self.message_user(request, verb.told(row.name), messages.SUCCESS)

    def note(self, request: HttpRequest, row: Any, done: str) -> None:
        """Record it, with the reason, in the admin's own history too."""
        shown = self.model(pk=row.pk, name=storable(row.name, limit=LONGEST_NAME))
        self.log_change(request, shown, noted(done, reason_of(request)))


LONGEST_REASON = 1000
LONGEST_NOTE = LONGEST_REASON + 200


class ReasonField(forms.CharField):
    """Any text, made storable; it may be left empty."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput({"class": "vTextField", "maxlength": LONGEST_REASON})
        defaults = {"label": _("Reason (kept in the audit)"), "required": False, "widget": widget}
        super().__init__(**{**defaults, **options})

    def to_python(self, value: Any) -> str:
        """Return the text in the form for the audit."""
        return storable(super().to_python(value) or "", limit=LONGEST_REASON)


class ReasonForm(ActionForm):
    """The list's choice of an action, with a reason."""

    reason = ReasonField(
        label=_("Reason:"),
        widget=forms.TextInput({"class": "taskqueue-reason", "maxlength": LONGEST_REASON}),
    )


def tell_errors(model_admin: ReadOnlyAdmin, request: HttpRequest, form: forms.Form) -> None:
    """Show the mistakes of a form that has no page of its own."""
    for field, errors in form.errors.items():
        told = " ".join(map(str, errors))
        text = told if field == NON_FIELD_ERRORS else labelled(form[field].label or field, told)
        model_admin.message_user(request, text, messages.ERROR)


def reason_of(request: HttpRequest) -> str:
    """Return the posted reason, made storable for the audit and the admin's own history."""
    return storable(request.POST.get("reason", ""), limit=LONGEST_REASON)


def noted(told: object, reason: str) -> str:
    """Return what was done and why, for the admin's own history."""
    return storable(f"{told} ({reason})" if reason else str(told), limit=LONGEST_NOTE)
