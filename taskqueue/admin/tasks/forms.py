"""The forms that edit a task: each checks what its verb checks, and then calls it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple, cast
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue import control
from taskqueue.admin.reasons import ReasonField
from taskqueue.admin.schedules.arguments import restored
from taskqueue.admin.schedules.fields import JsonField, SpanWidget, as_text
from taskqueue.admin.tasks.option_fields import (
    WhenField,
    labelled_options,
    name_parts,
    option_fields,
)
from taskqueue.declarations.option import Use
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.option_kinds import Seconds
from taskqueue.declarations.redaction import redacted
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import visible_arguments

TERMS = labelled_options(Use.CHANGE)
"""The options that the form of a task changes."""
DURATIONS = frozenset(name for name, option in TERMS.items() if isinstance(option.kind, Seconds))


class TaskForm(forms.Form):
    """A change to one task, and the reason."""

    submit = gettext_lazy("Save")
    makes_a_task = False

    reason = ReasonField()

    def __init__(self, data: Any = None, *, task: Task, user: Any) -> None:
        super().__init__(data, initial=self.initial_of(task, user))
        self.task = task
        self.fields.update(self.further_fields())
        self.order_fields([name for name in self.fields if name != "reason"])
        name_parts(self)

    def further_fields(self) -> Mapping[str, forms.Field]:
        """Return fields that are not declared in the class."""
        return {}

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        """Return the initial values."""
        return {}

    def act(self, **who: Any) -> UUID:
        """Call the verb; return the id of the task to show next. Raises what the verb raises."""
        raise NotImplementedError


class KeptJsonField(JsonField):
    """As its parent; None for an empty field."""

    def clean(self, value: Any) -> Any:
        """Return the value."""
        return super().clean(value) if (value or "").strip() else None


class Kept(NamedTuple):
    """The arguments that a form keeps where they stay redacted."""

    task_name: str
    args: list[Any]
    kwargs: dict[str, Any]


class RetryForm(TaskForm):
    """Other arguments; sensitive ones stay as they are unless the person writes others."""

    submit = gettext_lazy("Enqueue with these arguments")
    makes_a_task = True

    args = KeptJsonField(
        list, label=gettext_lazy("Positional arguments"),
        help_text=gettext_lazy('JSON, such as ["a", 1]. Empty: unchanged.'),
    )  # fmt: skip
    kwargs = KeptJsonField(
        dict, label=gettext_lazy("Keyword arguments"),
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
        kept = cast(Any, Kept(task.name, task.args, task.kwargs))
        try:
            values = restored(kept, task.name, data["args"] or [], data["kwargs"] or {})
        except TaskQueueError as error:
            raise ValidationError(str(error)) from None
        for name, value in zip(("args", "kwargs"), values, strict=True):
            data[name] = None if data[name] is None else value
        return data

    def act(self, **who: Any) -> UUID:
        data = self.cleaned_data
        return control.retry_with(self.task.pk, args=data["args"], kwargs=data["kwargs"], **who)


class ParameterForm(TaskForm):
    """The parameters of a verb, each by the field of its kind."""

    verb: ClassVar[TaskVerb]

    def act(self, **who: Any) -> UUID:
        names = [parameter.name for parameter in self.verb.parameters]
        self.verb.act(self.task.pk, **{name: self.cleaned_data[name] for name in names}, **who)
        return self.task.pk


KINDS = {"moment": lambda: WhenField(label=gettext_lazy("When"))}
"""What makes the field for a parameter of a kind."""


class UpdateForm(TaskForm):
    """Other options; attempts that run already keep the old ones.

    `shown` holds what the page showed. If somebody else has changed the same option since, nothing
    is changed before the person has seen it.
    """

    submit = gettext_lazy("Change")

    shown = forms.CharField(required=False, widget=forms.HiddenInput)

    def further_fields(self) -> Mapping[str, forms.Field]:
        return option_fields(TERMS, required=True)

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        now = terms_of(task)
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
                self.add_error(name, message % {"now": _in_words(now[name])})
        elif not self.changes:
            raise ValidationError(_("Nothing was changed."))
        return self.cleaned_data

    @property
    def changes(self) -> Mapping[str, Any]:
        """Return what the verb takes."""
        shown, wanted = self.cleaned_data["shown"], self.cleaned_data
        return {name: wanted[name] for name in TERMS if wanted[name] != shown[name]}

    def act(self, **who: Any) -> UUID:
        columns = {_column(name) for name in self.changes}
        seen = {column: getattr(self.task, column) for column in columns}
        control.update(self.task.pk, self.changes, seen=seen, **who)
        return self.task.pk

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


def terms_of(task: Task) -> dict[str, Any]:
    """Return the options of a task that the form has fields for."""
    return {
        name: _from_json(name, task.options.get(name))
        if option.carried == "snapshot"
        else getattr(task, name)
        for name, option in TERMS.items()
    }


def _column(name: str) -> str:
    return "options" if TERMS[name].carried == "snapshot" else name


def _from_json(name: str, value: Any) -> Any:
    if name in DURATIONS and value is not None:
        return timedelta(seconds=value)
    return value


def _as_text(terms: Mapping[str, Any]) -> str:
    return json.dumps({name: option_to_json(value) for name, value in terms.items()})


def _in_words(value: Any) -> str:
    return _("none") if value is None else str(value)


def _form_for(verb: TaskVerb) -> type[TaskForm]:
    fields = {parameter.name: KINDS[parameter.kind]() for parameter in verb.parameters}
    form: Any = type("Form", (ParameterForm,), {"verb": verb, "submit": verb.label, **fields})
    return form  # type: ignore[no-any-return]


OWN_FORMS: dict[str, type[TaskForm]] = {"retry_with": RetryForm, "update": UpdateForm}
FORMS = {
    verb.name: OWN_FORMS[verb.name] if verb.name in OWN_FORMS else _form_for(verb)
    for verb in TASK_VERBS.values()
    if verb.name in OWN_FORMS or verb.parameters
}
"""By the name of the verb."""
