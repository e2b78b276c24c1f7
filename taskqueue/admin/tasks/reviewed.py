"""Forms of a task that show changes before they are made: the differences, and a button."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext_lazy

from taskqueue.admin.acts import ReasonField
from taskqueue.admin.refusals import refused
from taskqueue.admin.schedules.fields import as_text
from taskqueue.admin.tasks.call_fields import AnyDefinition, CallForm, encode_call, fits
from taskqueue.admin.tasks.option_fields import WhenField
from taskqueue.admin.tasks.parameter_fields import ValueField
from taskqueue.declarations.call_differences import Call, Difference, differences_of
from taskqueue.declarations.definition import registry
from taskqueue.declarations.redaction import redacted_for
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.schedules.restoring import KEPT_SECRET, restored
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Schedule, Task
from taskqueue.monitoring.read_models.base import visible_arguments

SALT = "taskqueue.reviewed"


class TaskForm(CallForm):
    """A field for each parameter of a verb on one task, and the reason."""

    reason = ReasonField()

    def __init__(self, data: Any = None, *, verb: TaskVerb, task: Task, user: Any) -> None:
        self.verb, self.task, self.user = verb, task, user
        super().__init__(data, initial=self.initial_of(task, user))
        self.fields.update(self.parameter_fields())
        self.order_fields([name for name in self.fields if name != "reason"])

    @property
    def submit(self) -> Any:
        """The text of the button."""
        return self.verb.label

    @property
    def differences(self) -> Sequence[Difference]:
        """The changes to show before they are made."""
        return ()

    def is_confirmed(self) -> bool:
        """Return whether the person has seen the differences, if these are shown."""
        return True

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        """Return the initial values."""
        return {}

    def parameter_fields(self) -> Mapping[str, forms.Field]:
        """Return the fields that are not declared in the class; each of them is for a time."""
        when = gettext_lazy("When")
        return {parameter.name: WhenField(label=when) for parameter in self.verb.parameters}

    @property
    def groups(self) -> list[tuple[Any, bool, list[Any]]]:
        """The visible fields: each group with its title and whether it is open."""
        shown = [field for field in self.visible_fields() if field.name != "reason"]
        return [("", True, shown)]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the verb, from a valid form."""
        return {name: value for name, value in self.cleaned_data.items() if name != "reason"}


class CallChange(TaskForm):
    """Other arguments for a task; sensitive ones must be typed again if another one changes.

    Each has a field if the definition is known and accepts the task's present arguments; otherwise
    they are typed as JSON.
    """

    # A digest of what the person has seen; every page of the form sends it.
    reviewed = forms.CharField(required=False, initial="", widget=forms.HiddenInput)
    call: Call | None = None
    # With a name that templates cannot use: they would call it, and so run the body.
    _definition: AnyDefinition | None = None

    def add_call(self) -> None:
        """Add the fields of the arguments."""
        definition, kept = registry.find(self.task.name), Call(self.task.args, self.task.kwargs)
        if definition is not None and fits(definition, kept):
            self._definition = definition
            self.add_call_fields(definition, kept)
            return
        shown = visible_arguments(self.task.name, self.task.args, self.task.kwargs, self.user)
        for name, kind, label, example in RAW:
            self.fields[name] = ValueField(
                kind, required=False, is_nullable=False, label=label, help_text=example
            )
            self.initial[name] = "" if shown is None else as_text(getattr(shown, name))

    @property
    def is_raw(self) -> bool:
        """Whether the arguments are typed as JSON."""
        return "args" in self.fields

    def clean_call(self) -> None:
        """Read the arguments into `call`: None if they are unchanged. Errors are shown in the form.

        Values that are shown as redacted are restored.
        """
        kept = Call(list(self.task.args), dict(self.task.kwargs))
        call = self._raw_call(kept) if self.is_raw else self._field_call()
        if call is not None and (list(call.args), dict(call.kwargs)) != (kept.args, kept.kwargs):
            self.call = call

    def _field_call(self) -> Call | None:
        if self._definition is None or "reviewed" not in self.data:
            return None
        self.check_rest()
        if self.errors:
            return None
        call = self.given_call()
        if call is not None:
            self.attempt(None, encode_call, self._definition.without_key(), call)
        return call

    def _raw_call(self, kept: Call) -> Call | None:
        args, kwargs = self.cleaned_data.get("args"), self.cleaned_data.get("kwargs")
        definition = registry.find(self.task.name)
        # With marks for secrets, so that a part that is left empty does not keep one beside
        # changes.
        stored = kept if definition is None else Call(*redacted_for(definition, *kept))
        given = Call(
            stored.args if args is None else args, stored.kwargs if kwargs is None else kwargs
        )
        if definition is None and (args is None) != (kwargs is None):
            left = kept.args if args is None else kept.kwargs
            if (
                left
                and visible_arguments(self.task.name, self.task.args, self.task.kwargs, self.user)
                is None
            ):
                self.add_error("args" if args is None else "kwargs", KEPT_SECRET)
                return None
        call = given if definition is None else self._restored(definition, given)
        if self.errors:
            return None
        if definition is not None:
            self.attempt(None, encode_call, definition.without_key(), call)
        return call

    def _restored(self, definition: Any, given: Call) -> Call:
        kept = Schedule(task_name=self.task.name, args=self.task.args, kwargs=self.task.kwargs)
        try:
            return Call(*restored(kept, definition, list(given.args), dict(given.kwargs)))
        except TaskQueueError as error:
            self.add_error(None, ValidationError(refused(error)))
            return given

    @property
    def differences(self) -> Sequence[Difference]:
        """Return how the arguments differ, as far as the person may see them."""
        if self.call is None:
            return ()
        task, definition = self.task, registry.find(self.task.name)
        shown = visible_arguments(task.name, task.args, task.kwargs, self.user)
        if definition is None and shown is None:
            return ()
        return differences_of(Call(task.args, task.kwargs), self.call, definition=definition)

    @property
    def _seen(self) -> str:
        """Return a digest of all changes, which reveals nothing about them."""
        what = [str(self.task.pk), self.verb.name, self.to_review()]
        text = json.dumps(what, sort_keys=True, default=str)
        return salted_hmac(SALT, text, algorithm="sha256").hexdigest()

    def to_review(self) -> Any:
        """Return what the person must have seen."""
        return self.call

    def is_confirmed(self) -> bool:
        """Return whether the person has seen the differences.

        If not, the page shows them and asks.
        """
        if not self.differences:
            return True
        if constant_time_compare(self.cleaned_data.get("reviewed", ""), self._seen):
            return True
        data: Any = self.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
        data["reviewed"] = self._seen
        self.data = data
        return False

    @property
    def secrets(self) -> list[str]:
        """The typed sensitive arguments; they are not shown, so they must be typed again."""
        return [
            each.name
            for each in self.parameters
            if each.is_sensitive and self.data.get(f"arg_{each.name}")
        ]


RAW: tuple[tuple[str, type, Any, Any], ...] = (
    (
        "args", list, gettext_lazy("Positional arguments"),
        gettext_lazy('JSON, such as ["a", 1]. Empty: unchanged.'),
    ),
    (
        "kwargs", dict, gettext_lazy("Keyword arguments"),
        gettext_lazy('JSON, such as {"a": 1}. Empty: unchanged.'),
    ),
)  # fmt: skip
