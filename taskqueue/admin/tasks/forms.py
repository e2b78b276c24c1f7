"""What can be edited of a task: each form checks what its verb checks, and then calls it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue import control
from taskqueue.admin.schedules.arguments import restored
from taskqueue.admin.schedules.fields import JsonField, as_text
from taskqueue.admin.schedules.rules import moment_in
from taskqueue.admin.tasks.task_form import WIDE, TaskForm
from taskqueue.admin.tasks.terms_form import UpdateForm
from taskqueue.declarations.redaction import redacted
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import visible_arguments

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
SPAN = re.compile(
    r"(?:in\s+)?(\d{1,9}(?:\.\d{1,6})?)\s*"
    r"(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)",
    re.IGNORECASE,
)


class WhenField(forms.CharField):
    """A moment, or how long until it: such as `in 5 minutes`, `2h`, `2026-12-01 09:00`."""

    def __init__(self, **options: Any) -> None:
        suggestions = {"list": "taskqueue-times", "autocomplete": "off", **WIDE}
        super().__init__(max_length=100, widget=forms.TextInput(suggestions), **options)

    def clean(self, value: Any) -> datetime | timedelta | None:
        """An aware datetime or a duration; None where none was given."""
        text = super().clean(value)
        if not text:
            return None
        found = SPAN.fullmatch(text)
        if found is not None:
            return _span(float(found[1]) * UNITS[found[2][0].lower()])
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValidationError(
                _(
                    "Write a moment such as 2026-12-01 09:00, "
                    "or a time from now such as in 5 minutes."
                )
            ) from None
        return _aware(moment)


def _span(seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValidationError(_("This is longer than any calendar.")) from None


def _aware(moment: datetime) -> datetime:
    """Without an offset it is one of the current time zone. Raises ValidationError."""
    zone = timezone.get_current_timezone_name()
    try:
        return cast(datetime, moment_in(zone, "moment", moment))
    except ValidationError as error:
        raise ValidationError(error.messages) from None
    except (OverflowError, LookupError, ValueError):
        return timezone.make_aware(moment) if moment.tzinfo is None else moment


class KeptJsonField(JsonField):
    """As its parent; None where nothing was given."""

    def clean(self, value: Any) -> Any:
        """The value."""
        return super().clean(value) if (value or "").strip() else None


class Kept(NamedTuple):
    """The arguments that a form keeps where they stay redacted."""

    task_name: str
    args: list[Any]
    kwargs: dict[str, Any]


class RetryForm(TaskForm):
    """Other arguments; sensitive ones are kept as they were unless others are written."""

    submit = gettext_lazy("Enqueue it with these arguments")
    done = gettext_lazy("Enqueued with other arguments.")
    makes_a_task = True

    args = KeptJsonField(
        list, label=gettext_lazy("Positional arguments"),
        help_text=gettext_lazy('JSON, such as ["a", 1]. Empty: as they were.'),
    )  # fmt: skip
    kwargs = KeptJsonField(
        dict, label=gettext_lazy("Keyword arguments"),
        help_text=gettext_lazy('JSON, such as {"a": 1}. Empty: as they were.'),
    )  # fmt: skip

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        """The arguments, as far as this user may see them."""
        shown = visible_arguments(task.name, task.args, task.kwargs, user)
        if shown is None:
            return {"args": "", "kwargs": ""}
        return {"args": as_text(shown.args), "kwargs": as_text(shown.kwargs)}

    def clean(self) -> dict[str, Any]:
        """Put back what stands redacted."""
        given, task = self.cleaned_data, self.task
        if self.errors or redacted(task.name, task.args, task.kwargs) is None:
            return given
        kept = cast(Any, Kept(task.name, task.args, task.kwargs))
        try:
            found = restored(kept, task.name, given["args"] or [], given["kwargs"] or {})
        except TaskQueueError as error:
            raise ValidationError(str(error)) from None
        for name, value in zip(("args", "kwargs"), found, strict=True):
            given[name] = None if given[name] is None else value
        return given

    def act(self, **who: Any) -> UUID:
        given = self.cleaned_data
        return control.retry_with(self.task.pk, args=given["args"], kwargs=given["kwargs"], **who)


class RescheduleForm(TaskForm):
    """Another time."""

    submit = gettext_lazy("Reschedule")
    done = gettext_lazy("Rescheduled.")

    run_after = WhenField(
        label=gettext_lazy("When"),
        help_text=gettext_lazy(
            "A moment such as 2026-12-01 09:00, or a time from now such as in 5 minutes."
        ),
    )

    def act(self, **who: Any) -> UUID:
        control.reschedule(self.task.pk, self.cleaned_data["run_after"], **who)
        return self.task.pk


FORMS: dict[str, type[TaskForm]] = {
    "retry": RetryForm,
    "reschedule": RescheduleForm,
    "update": UpdateForm,
}
"""By the name of the edit."""
