"""Why somebody acts: what the forms take, and what the audit can store."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.helpers import ActionForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from taskqueue.declarations.payload import storable

LONGEST_REASON = 1000


class ReasonField(forms.CharField):
    """Takes any text, and makes it fit to be stored."""

    def to_python(self, value: Any) -> str:
        """The text as the audit has it."""
        return storable(super().to_python(value) or "", limit=LONGEST_REASON)


class ReasonForm(ActionForm):
    """The list's choice of an action, with why."""

    reason = ReasonField(
        required=False, label=_("Reason:"),
        widget=forms.TextInput({"class": "taskqueue-reason", "maxlength": LONGEST_REASON}),
    )  # fmt: skip


def reason_of(request: HttpRequest) -> str:
    """Why, as the audit and the admin's own history can store it."""
    return storable(request.POST.get("reason", ""), limit=LONGEST_REASON)
