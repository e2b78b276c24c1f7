"""The arguments in a schedule's form: a field for each parameter of its target, or JSON."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms.utils import ErrorDict
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.schedules.fields import JsonField
from taskqueue.admin.tasks.call_fields import CallForm, fits, shown_call
from taskqueue.declarations.call_differences import Call
from taskqueue.declarations.definition import registry
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.declarations.workflows.workflow import workflows
from taskqueue.engine.schedules.editing import target_of
from taskqueue.engine.schedules.restoring import restored
from taskqueue.models import Schedule


class ScheduleCall(CallForm):
    """The arguments: as JSON, until the page shows fields for the target's parameters."""

    args = JsonField(list, label=_("Positional arguments"), help_text=_('JSON, such as ["a", 1].'))
    kwargs = JsonField(dict, label=_("Keyword arguments"), help_text=_('JSON, such as {"a": 1}.'))
    # The task or workflow for whose arguments the page has fields.
    fields_for = forms.CharField(required=False, widget=forms.HiddenInput)

    # The edited row; None for a new schedule.
    schedule: Schedule | None = None

    def add_arguments(self, name: str, shown: Schedule | None) -> None:
        """Replace JSON by the fields of the target, if they can show the arguments."""
        target = None if shown is None or shown.task_name != name else target_of(shown)
        call = None
        if shown is not None and target is not None:
            call = Call(shown.args, shown.kwargs)
        else:
            target = registry.find(name) or workflows.find(name)
        if target is None or (call is not None and not fits(target, call)):
            return
        del self.fields["args"], self.fields["kwargs"]
        self.add_call_fields(target, call if shown is self.schedule else None)
        self.initial.update(shown_call(self.parameters, call))

    @property
    def call_names(self) -> list[str]:
        """The names of the arguments' fields; empty until a task is chosen."""
        if "args" not in self.fields:
            return self.argument_names
        is_chosen = self["fields_for"].value() or self.data
        return ["args", "kwargs"] if is_chosen else []

    @property
    def call_fields(self) -> list[forms.BoundField]:
        """The fields of the arguments."""
        return [self[name] for name in self.call_names]

    def show_fields_of(self, chosen: str) -> None:
        """Show the sent values without errors, with the fields of the newly chosen target."""
        data: Any = self.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
        data["fields_for"] = chosen
        for name in self.call_names:
            value = self.get_initial_for_field(self.fields[name], name)
            if name not in data and value not in (None, False):
                data[name] = "on" if value is True else str(value)
        self.data = data
        self._errors, self.cleaned_data = ErrorDict(), {}

    def read_call(
        self, given: dict[str, Any], target: Target
    ) -> tuple[list[Any], dict[str, Any]] | None:
        """Return the arguments; None if there is an error, which the form shows."""
        if "args" in self.fields:
            call = (target, given["args"], given["kwargs"])
            found: tuple[list[Any], dict[str, Any]] | None
            found = self.attempt("args", restored, self.schedule, *call)
            return found
        self.check_rest()
        made = None if self.errors else self.given_call()
        return None if made is None else (list(made.args), dict(made.kwargs))
