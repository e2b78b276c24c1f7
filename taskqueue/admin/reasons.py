"""The reason that people give for an action, as the audit can store it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.helpers import ActionForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from taskqueue.declarations.payload import storable

LONGEST_REASON = 1000
LONGEST_NOTE = LONGEST_REASON + 200


class ReasonField(forms.CharField):
    """Any text, made fit to be stored; it may be left empty."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput({"class": "vTextField", "maxlength": LONGEST_REASON})
        defaults = {"label": _("Reason (kept in the audit)"), "required": False, "widget": widget}
        super().__init__(**{**defaults, **options})

    def to_python(self, value: Any) -> str:
        """Return the text as the audit has it."""
        return storable(super().to_python(value) or "", limit=LONGEST_REASON)


class ReasonForm(ActionForm):
    """The list's choice of an action, with a reason."""

    reason = ReasonField(
        label=_("Reason:"),
        widget=forms.TextInput({"class": "taskqueue-reason", "maxlength": LONGEST_REASON}),
    )


def reason_of(request: HttpRequest) -> str:
    """Return the posted reason, as the audit and the admin's own history can store it."""
    return storable(request.POST.get("reason", ""), limit=LONGEST_REASON)


def noted(told: object, reason: str) -> str:
    """Return what was done and why, as the admin's own history keeps it."""
    return storable(f"{told} ({reason})" if reason else str(told), limit=LONGEST_NOTE)
