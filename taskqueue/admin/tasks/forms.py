"""The forms that edit a task: each checks what its verb checks, and then calls it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.acts import ReasonField
from taskqueue.admin.schedules.fields import SpanWidget, as_text
from taskqueue.admin.tasks.option_fields import (
    WhenField,
    changeable_options,
    option_fields,
)
from taskqueue.admin.tasks.parameter_fields import ValueField
from taskqueue.declarations.definition import registry
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.option_kinds import Seconds
from taskqueue.declarations.redaction import redacted
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.schedules.restoring import restored
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Schedule, Task
from taskqueue.monitoring.read_models.base import visible_arguments

# The options that the form of a task changes.
TERMS = changeable_options()
DURATIONS = frozenset(name for name, option in TERMS.items() if isinstance(option.kind, Seconds))


class TaskForm(forms.Form):
    """A field for each parameter of a verb on one task, and the reason."""

    reason = ReasonField()

    def __init__(self, data: Any = None, *, verb: TaskVerb, task: Task, user: Any) -> None:
        super().__init__(data, initial=self.initial_of(task, user))
        self.verb, self.task = verb, task
        self.fields.update(self.parameter_fields())
        self.order_fields([name for name in self.fields if name != "reason"])

    @property
    def submit(self) -> Any:
        """The text of the button."""
        return self.verb.label

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        """Return the initial values."""
        return {}

    def parameter_fields(self) -> Mapping[str, forms.Field]:
        """Return the fields that are not declared in the class: each is for a time."""
        when = gettext_lazy("When")
        return {parameter.name: WhenField(label=when) for parameter in self.verb.parameters}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the verb, from a valid form."""
        return {name: value for name, value in self.cleaned_data.items() if name != "reason"}


class RetryForm(TaskForm):
    """Other arguments; sensitive ones stay as they are unless the person writes others."""

    submit = gettext_lazy("Enqueue with these arguments")

    args = ValueField(
        list, required=False, is_nullable=False, label=gettext_lazy("Positional arguments"),
        help_text=gettext_lazy('JSON, such as ["a", 1]. Empty: unchanged.'),
    )  # fmt: skip
    kwargs = ValueField(
        dict, required=False, is_nullable=False, label=gettext_lazy("Keyword arguments"),
        help_text=gettext_lazy('JSON, such as {"a": 1}. Empty: unchanged.'),
    )  # fmt: skip

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        """Return the arguments, as far as this user may see them."""
        shown = visible_arguments(task.name, task.args, task.kwargs, user)
        if shown is None:
            return {"args": "", "kwargs": ""}
        return {"args": as_text(shown.args), "kwargs": as_text(shown.kwargs)}

    def clean(self) -> dict[str, Any]:
        """Put back the redacted values."""
        data, task = self.cleaned_data, self.task
        if self.errors or redacted(task.name, task.args, task.kwargs) is None:
            return data
        kept = Schedule(task_name=task.name, args=task.args, kwargs=task.kwargs)
        try:
            definition = registry.get(task.name)
            args, kwargs = restored(kept, definition, data["args"] or [], data["kwargs"] or {})
        except TaskQueueError as error:
            raise ValidationError(str(error)) from None
        data["args"] = None if data["args"] is None else args
        data["kwargs"] = None if data["kwargs"] is None else kwargs
        return data


class UpdateForm(TaskForm):
    """Other options; attempts that run already keep the old ones.

    `shown` holds what the page showed. If somebody else has changed the same option since, nothing
    is changed before the person has seen it.
    """

    submit = gettext_lazy("Change")

    shown = forms.CharField(required=False, widget=forms.HiddenInput)

    def parameter_fields(self) -> Mapping[str, forms.Field]:
        return option_fields(TERMS, required=True)

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        now = {
            name: _from_json(name, task.options.get(name))
            if option.carried == "snapshot"
            else getattr(task, name)
            for name, option in TERMS.items()
        }
        return {**now, "shown": _as_text(now)}

    def clean_shown(self) -> dict[str, Any]:
        """Return the options that the page showed; the current ones where it sent none."""
        text = self.cleaned_data["shown"]
        if not text:
            return self._now
        try:
            sent = json.loads(text)
            return {name: _from_json(name, sent[name]) for name in TERMS}
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise ValidationError(_("This does not come from a page of the admin.")) from None

    def clean(self) -> dict[str, Any]:
        """Change only what differs from what was shown: the rest may be somebody else's."""
        if "shown" in self.errors:
            raise ValidationError(_("The form is incomplete. Reload the page."))
        if self.errors:
            return self.cleaned_data
        shown, now, wanted = self.cleaned_data["shown"], self._now, self.cleaned_data
        lost = [name for name in self.changes if now[name] not in (shown[name], wanted[name])]
        if lost:
            self._show_again()
            for name in lost:
                message = _("Somebody else has changed this meanwhile, to %(now)s.")
                value = _("none") if now[name] is None else now[name]
                self.add_error(name, message % {"now": value})
        elif not self.changes:
            raise ValidationError(_("Nothing was changed."))
        return self.cleaned_data

    @property
    def changes(self) -> Mapping[str, Any]:
        """Return what the verb takes."""
        shown, wanted = self.cleaned_data["shown"], self.cleaned_data
        return {name: wanted[name] for name in TERMS if wanted[name] != shown[name]}

    def arguments(self) -> dict[str, Any]:
        columns = {
            "options" if TERMS[name].carried == "snapshot" else name for name in self.changes
        }
        seen = {column: getattr(self.task, column) for column in columns}
        return {"changes": self.changes, "seen": seen}

    @property
    def _now(self) -> dict[str, Any]:
        return {name: self.initial[name] for name in TERMS}

    def _show_again(self) -> None:
        """Show the current options, and the person's own changes."""
        kept = {**self._now, **self.changes}
        data: Any = self.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
        for name in TERMS:
            data[name] = kept[name]
        for name in DURATIONS:
            for place, part in enumerate(SpanWidget().decompress(kept[name])):
                data[f"{name}_{place}"] = "" if part is None else str(part)
        data["shown"] = _as_text(self._now)
        self.data = data


def _from_json(name: str, value: Any) -> Any:
    return timedelta(seconds=value) if name in DURATIONS and value is not None else value


def _as_text(terms: Mapping[str, Any]) -> str:
    return json.dumps({name: option_to_json(value) for name, value in terms.items()})


OWN_FORMS: dict[str, type[TaskForm]] = {"retry_with": RetryForm, "update": UpdateForm}
# By the name of the verb.
FORMS = {
    verb.name: OWN_FORMS.get(verb.name, TaskForm)
    for verb in TASK_VERBS.values()
    if verb.name in OWN_FORMS or verb.parameters
}
