"""The forms that edit a task: each makes the same checks as its verb, and then calls it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.crypto import salted_hmac
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.refusals import refused
from taskqueue.admin.schedules.fields import SpanField
from taskqueue.admin.tasks.option_fields import FIRST, changeable_options, option_fields
from taskqueue.admin.tasks.option_values import parts_of, plain_option, shown_option
from taskqueue.admin.tasks.reviewed import CallChange, TaskForm
from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.declarations.call_differences import Difference, value_differences
from taskqueue.declarations.option import Option, Use
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import options_for
from taskqueue.engine.control.edits import EDITED_COLUMNS
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Task
from taskqueue.tracing.metadata import carried

# Options that are changed only while the task waits; such changes are shown before they are made.
EDITED = options_for(Use.EDIT)
CALL = "call"


class RetryForm(CallChange):
    """A retry with other arguments."""

    submit = gettext_lazy("Enqueue with these arguments")

    def parameter_fields(self) -> Mapping[str, forms.Field]:
        self.add_call()
        return {}

    def clean(self) -> dict[str, Any]:
        if not self.errors:
            self.clean_call()
        return self.cleaned_data

    def arguments(self) -> dict[str, Any]:
        if self.call is None:
            return {"args": None, "kwargs": None}
        return {"args": list(self.call.args), "kwargs": dict(self.call.kwargs)}


class UpdateForm(CallChange):
    """Other options; running attempts keep the old ones.

    Of a waiting task everything can be edited. `shown` contains what the page showed. If somebody
    else has changed that since, nothing is changed before the person has seen it.
    """

    submit = gettext_lazy("Save")

    shown = forms.CharField(required=False, widget=forms.HiddenInput)
    terms: Mapping[str, Option]
    # The changed options with their JSON values, once the form is valid.
    wanted: Mapping[str, Any] = {}

    def parameter_fields(self) -> Mapping[str, forms.Field]:
        task = self.task
        fields = option_fields(self.terms, required=True)
        if "expires_after" in fields and task.expires_at is not None:
            now = _("It expires at %(moment)s. Counted from now; empty: unchanged.")
            text = now % {"moment": task.expires_at.isoformat(" ", "seconds")}
            fields["expires_after"].help_text = format_lazy("{}", text)
        if task.status in PENDING and task.step_id is None and self.user.has_perm(ENQUEUE):
            self.add_call()
        return fields

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        waits = task.status in PENDING and task.status != TaskStatus.BLOCKED
        self.terms = changeable_options(*((Use.CHANGE, Use.EDIT) if waits else (Use.CHANGE,)))
        self._now = {name: _current(option, task) for name, option in self.terms.items()}
        values = {name: shown_option(self.terms[name], plain) for name, plain in self._now.items()}
        return {**values, "shown": self._as_text()}

    @property
    def groups(self) -> list[tuple[Any, bool, list[Any]]]:
        call = self.argument_names or [name for name in ("args", "kwargs") if name in self.fields]
        first = [name for name in self.terms if name in FIRST or name in EDITED]
        rest = [name for name in self.terms if name not in first]
        has_errors = not self.errors.keys().isdisjoint(rest)
        named = [
            (gettext_lazy("Arguments"), True, call),
            (gettext_lazy("Options"), True, first),
            (gettext_lazy("More options"), has_errors, rest),
        ]
        return [
            (title, is_open, [self[each] for each in own]) for title, is_open, own in named if own
        ]

    def clean_shown(self) -> dict[str, Any]:
        """Return the options that the page showed; the current ones if it sent none."""
        text = self.cleaned_data["shown"]
        if not text:
            return {**self._now, CALL: self._digest}
        try:
            sent = json.loads(text)
            return {name: sent[name] for name in (*self.terms, CALL)}
        except (ValueError, TypeError, LookupError, RecursionError):
            raise ValidationError(_("This does not come from a page of the admin.")) from None

    def clean(self) -> dict[str, Any]:
        """Change only what differs from what was shown: the rest may be somebody else's change."""
        if "shown" in self.errors:
            raise ValidationError(_("The form is incomplete. Reload the page."))
        shown = self.cleaned_data["shown"]
        self.wanted = self._changes(shown)
        if not self.errors:
            self.clean_call()
        if self.errors:
            return self.cleaned_data
        lost = [
            name
            for name, plain in self.wanted.items()
            if self._now[name] not in (shown[name], plain)
        ]
        if lost:
            self._show_again()
            for name in lost:
                message = _("Somebody else has changed this meanwhile, to %(now)s.")
                value = _("none") if self._now[name] is None else self._now[name]
                self.add_error(name, message % {"now": value})
        elif self.call is not None and shown[CALL] != self._digest:
            raise ValidationError(
                _("Somebody else has changed the arguments meanwhile. Reload the page.")
            )
        elif not self.wanted and self.call is None:
            raise ValidationError(_("Nothing was changed."))
        return self.cleaned_data

    def _changes(self, shown: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that differ from what was shown, as JSON values."""
        found = {}
        for name, option in self.terms.items():
            if self._is_untouched(name):
                self.errors.pop(name, None)
                continue
            if name in self.errors:
                continue
            try:
                plain = plain_option(option, self.cleaned_data[name])
            except InvalidTask as error:
                self.add_error(name, refused(error))
                continue
            if plain != shown[name]:
                found[name] = plain
        return found

    def _is_untouched(self, name: str) -> bool:
        """Return whether the field was not sent, or still has a value that this process cannot
        read.
        """
        if isinstance(self.fields[name], SpanField):
            return f"{name}_0" not in self.data
        return name not in self.data or (
            name in self.errors and self.data[name] == self.initial.get(name)
        )

    @property
    def differences(self) -> Sequence[Difference]:
        """Return the changes of an edit, except options that may change at any time."""
        edited = {name: plain for name, plain in self.wanted.items() if name in EDITED}
        found = list(super().differences)
        if not (edited or found):
            return ()
        return found + [
            each
            for name, plain in self.wanted.items()
            for each in value_differences(name, self._now[name], plain)
        ]

    def to_review(self) -> Any:
        return [self.call, self.wanted]

    def arguments(self) -> dict[str, Any]:
        changes = {
            name: None if plain is None else self.cleaned_data[name]
            for name, plain in self.wanted.items()
        }
        given: dict[str, Any] = {"changes": changes, "seen": self._seen_columns()}
        if self.call is not None:
            given |= {"args": list(self.call.args), "kwargs": dict(self.call.kwargs)}
        return given

    def _seen_columns(self) -> dict[str, Any]:
        columns = {
            "options" if self.terms[name].carried == "snapshot" else EDITED_COLUMNS.get(name, name)
            for name in self.wanted
        }
        if self.call is not None:
            columns |= {"args", "kwargs"}
        return {column: getattr(self.task, column) for column in columns}

    @property
    def _digest(self) -> str:
        """Return a digest of the task's arguments, which reveals nothing about them."""
        text = json.dumps([self.task.args, self.task.kwargs], sort_keys=True)
        return salted_hmac("taskqueue.arguments", text, algorithm="sha256").hexdigest()

    def _as_text(self) -> str:
        return json.dumps({**self._now, CALL: self._digest})

    def _show_again(self) -> None:
        """Show the current options, and the person's own changes."""
        data: Any = self.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
        for name, plain in {**self._now, **self.wanted}.items():
            value = shown_option(self.terms[name], plain)
            data[name] = "" if value is None else str(value)
            if isinstance(self.fields[name], SpanField):
                for place, part in enumerate(parts_of(value)):
                    data[f"{name}_{place}"] = part
        data["shown"] = self._as_text()
        self.data = data


def _current(option: Option, task: Task) -> Any:
    """Return the value of a task's option as JSON."""
    if option.name == "metadata":
        hidden = carried(task.metadata)
        return {key: value for key, value in task.metadata.items() if key not in hidden}
    if option.name == "expires_after":
        return None  # The time is known, but not how long it was from the enqueue.
    if option.name == "deadline":
        return option_to_json(task.deadline_at)
    if option.carried == "snapshot":
        return task.options.get(option.name, option_to_json(option.default))
    return option_to_json(getattr(task, option.name))


OWN_FORMS: dict[str, type[TaskForm]] = {"retry_with": RetryForm, "update": UpdateForm}
# By the name of the verb.
FORMS = {
    verb.name: OWN_FORMS.get(verb.name, TaskForm)
    for verb in TASK_VERBS.values()
    if verb.name in OWN_FORMS or verb.parameters
}
