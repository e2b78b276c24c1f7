"""Forms for the arguments of a bulk action."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.reasons import ReasonField
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.models.task import HIGHEST_PRIORITY, LONGEST_QUEUE_NAME, LOWEST_PRIORITY

LONGEST_DELAY = 366 * 24 * 60


class StartForm(forms.Form):
    """The reason."""

    reason = ReasonField()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the verb, from a valid form."""
        return {}


class RescheduleForm(StartForm):
    """A time, or a delay."""

    run_after = forms.DateTimeField(
        label=gettext_lazy("At"),
        required=False,
        widget=forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=gettext_lazy("In the time zone of the admin."),
    )
    minutes = forms.IntegerField(
        label=gettext_lazy("Or in so many minutes"),
        required=False,
        min_value=0,
        max_value=LONGEST_DELAY,
    )
    field_order = ("run_after", "minutes", "reason")

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if not self.errors and (given["run_after"] is None) == (given["minutes"] is None):
            raise forms.ValidationError(_("Give a time, or a number of minutes."))
        return given

    def arguments(self) -> dict[str, Any]:
        """A moment, or a duration from now."""
        minutes = self.cleaned_data["minutes"]
        if minutes is None:
            return {"run_after": self.cleaned_data["run_after"]}
        return {"run_after": timedelta(minutes=minutes)}


class UpdateForm(StartForm):
    """Priority, queue, or both."""

    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        required=False,
        min_value=LOWEST_PRIORITY,
        max_value=HIGHEST_PRIORITY,
        help_text=gettext_lazy("Higher runs first. Left empty, it stays as it is."),
    )
    queue_name = forms.CharField(
        label=gettext_lazy("Queue"),
        required=False,
        max_length=LONGEST_QUEUE_NAME,
        widget=forms.TextInput({"class": "vTextField"}),
        help_text=gettext_lazy("Left empty, it stays as it is."),
    )
    field_order = ("priority", "queue_name", "reason")

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if not self.errors and given["priority"] is None and not given["queue_name"]:
            raise forms.ValidationError(_("Give a priority, a queue, or both."))
        return given

    def arguments(self) -> dict[str, Any]:
        """Only what is to be changed."""
        names = ("priority", "queue_name")
        given = {name: self.cleaned_data[name] for name in names}
        return {"changes": {k: value for k, value in given.items() if value not in (None, "")}}


KINDS: dict[str, type[StartForm]] = {"moment": RescheduleForm, "changes": UpdateForm}
"""The form for a parameter, by its kind."""


def form_for(verb: TaskVerb) -> type[StartForm]:
    """Return the form for the arguments of the verb."""
    return KINDS[verb.parameters[0].kind] if verb.parameters else StartForm
