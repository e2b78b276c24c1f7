"""What the forms of a task have in common."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.reasons import ReasonField
from taskqueue.admin.schedules.fields import SpanField
from taskqueue.models import Task

WIDE = {"class": "vTextField"}


def name_parts(form: forms.Form) -> None:
    """Name each part of a length of time for those who hear the form."""
    for field in form.fields.values():
        if isinstance(field, SpanField):
            number, unit = field.widget.widgets
            number.attrs["aria-label"] = field.label
            unit.attrs["aria-label"] = _("Unit")


class TaskForm(forms.Form):
    """A change to one task, and why."""

    submit = gettext_lazy("Save")
    done = gettext_lazy("Saved.")
    makes_a_task = False

    def __init__(self, data: Any = None, *, task: Task, user: Any) -> None:
        super().__init__(data, initial=self.initial_of(task, user))
        self.task = task
        self.order_fields([name for name in self.fields if name != "reason"])
        name_parts(self)

    reason = ReasonField(
        label=gettext_lazy("Reason, for the audit"), required=False,
        widget=forms.TextInput(WIDE),
    )  # fmt: skip

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        """What the form says at first."""
        return {}

    def act(self, **who: Any) -> UUID:
        """Call the verb; the id of the task to show then. Raises what the verb raises."""
        raise NotImplementedError
