"""The arguments of a call as form fields, one for each parameter of the called function.

The forms to enqueue, retry, edit and schedule use this. If a call exists already, a sensitive
argument that is left empty is kept, unless another argument is changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.refusals import refused
from taskqueue.admin.tasks.parameter_fields import (
    PREFIX,
    field_name,
    field_of,
    is_left_out,
    needs_null_box,
    null_name,
    shown_value,
)
from taskqueue.declarations.call_differences import Call
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.parameters import (
    HasParameters,
    Parameter,
    call_like,
    call_of,
    parameters,
    values_of_call,
)
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.schedules.restoring import KEPT_SECRET
from taskqueue.exceptions import TaskQueueError

AnyDefinition = BaseDefinition[Any, Any]
TROUBLE = (TaskQueueError, ValueError, TypeError, OverflowError)


def fits(target: HasParameters | None, call: Call) -> bool:
    """Return whether the fields of a definition or a workflow can show the call."""
    if target is None:
        return False
    return target.signature.bound(list(call.args), dict(call.kwargs)) is not None


class CallForm(forms.Form):
    """A form with a field for each parameter of a task or workflow, once one is chosen."""

    _kept_call: Call | None = None
    parameters: list[Parameter] = []
    kept: Mapping[str, Any] = {}

    def add_call_fields(self, target: HasParameters, kept: Call | None = None) -> None:
        """Add the fields; `kept` is the call that is changed, if there is one."""
        self.parameters = parameters(target)
        self.kept = {} if kept is None else dict(values_of_call(self.parameters, *kept))
        self._kept_call = kept
        for parameter in self.parameters:
            field = self.fields[field_name(parameter)] = field_of(parameter)
            if parameter.kind in (int, float) and isinstance(self.kept.get(parameter.name), str):
                # A browser shows no text in a number field.
                field.widget = forms.TextInput()
            if parameter.is_sensitive and parameter.name in self.kept:
                field.required = False
                stays = gettext_lazy("Left empty, it stays as it is, if no argument changes.")
                field.help_text = format_lazy("{} {}", field.help_text, stays)
            if needs_null_box(parameter):
                self.fields[null_name(parameter)] = forms.BooleanField(
                    label=f"{parameter.name} = null", required=False
                )
        self.initial.update(shown_call(self.parameters, kept))

    @property
    def argument_fields(self) -> list[Any]:
        """The parameters' fields, in the order of the signature."""
        return [self[name] for name in self.argument_names]

    @property
    def argument_names(self) -> list[str]:
        """The names of these fields."""
        names = [(field_name(each), null_name(each)) for each in self.parameters]
        return [name for pair in names for name in pair if name in self.fields]

    def check_rest(self) -> None:
        """Refuse a secret among the other keywords, and do not show it."""
        for parameter in self.parameters:
            if parameter.place is not inspect.Parameter.VAR_KEYWORD:
                continue
            written = self.cleaned_data.get(field_name(parameter)) or {}
            own = {each.name for each in self.parameters if each is not parameter}
            if twice := sorted(own & written.keys()):
                told = _("%(name)s has a field of its own.") % {"name": twice[0]}
                self.add_error(field_name(parameter), told)
                data: Any = self.data.copy()  # type: ignore[attr-defined]  # (a request's POST)
                data[field_name(parameter)] = ""
                self.data = data

    def given_call(self) -> Call | None:
        """Return the call from the fields; None if there is an error, which its field shows.

        An unchanged argument is passed as before: by position, by name, or left out.
        """
        given: dict[str, Any] = self.cleaned_data
        values: dict[str, Any] = {}
        for each in self.parameters:
            value, raw = given[field_name(each)], self[field_name(each)].data
            if given.get(null_name(each)):
                values[each.name] = None
            elif each.name in self.kept and self._is_kept(each, value, raw):
                values[each.name] = self.kept[each.name]
            elif not is_left_out(each, value, raw):
                values[each.name] = value
        try:
            if self._kept_call is None:
                return Call(*call_of(self.parameters, values))
            call = Call(*call_like(self._kept_call, self.parameters, values))
        except ValueError as error:
            told = _("Fill in this one too: arguments after it are passed by position.")
            self.add_error(f"{PREFIX}{error}", told)
            return None
        return None if self._refuse_kept_secrets(call) else call

    def _refuse_kept_secrets(self, call: Call) -> bool:
        """Refuse changed arguments beside secrets that were not typed again.

        Return whether they are. A person who cannot see a secret must not be able to send it
        elsewhere.
        """
        kept = self._kept_call
        if kept is None or (list(call.args), dict(call.kwargs)) == (
            list(kept.args), dict(kept.kwargs),
        ):  # fmt: skip
            return False
        names = [
            field_name(each)
            for each in self.parameters
            if each.is_sensitive
            and each.name in self.kept
            and self[field_name(each)].data in (None, "")
            and not self.cleaned_data.get(null_name(each))
        ]
        for name in names:
            self.add_error(name, KEPT_SECRET)
        return bool(names)

    def _is_kept(self, parameter: Parameter, value: Any, raw: Any) -> bool:
        kept = self.kept[parameter.name]
        if parameter.is_sensitive and raw in (None, ""):
            return True
        return type(value) is type(kept) and value == kept and value != REDACTED

    def attempt(
        self, field: str | None, check: Callable[..., Any], *args: Any, **named: Any
    ) -> Any:
        """Return the result of the check; None after an error, which the field shows."""
        try:
            return check(*args, **named)
        except ValidationError as error:
            self.add_error(field, error)
        except TROUBLE as error:
            self.add_error(field, refused(error))
        return None


def shown_call(found: Sequence[Parameter], call: Call | None) -> dict[str, Any]:
    """Return what the parameters' fields show of a call: nothing of secrets."""
    values = {} if call is None else dict(values_of_call(found, *call))
    shown: dict[str, Any] = {}
    for parameter in found:
        if parameter.name not in values or parameter.is_sensitive:
            continue
        value = values[parameter.name]
        if value is None and needs_null_box(parameter):
            shown[null_name(parameter)] = True
        elif value != REDACTED:
            shown[field_name(parameter)] = shown_value(parameter, value)
    return shown


def encode_call(definition: AnyDefinition, call: Call) -> None:
    """Check the arguments. Of a callable's error only the class is shown."""
    args, kwargs = list(call.args), dict(call.kwargs)
    # Without the error's text, which may contain an argument that is a secret.
    try:
        *stored, _key = definition.encode(args, kwargs)
    except TaskQueueError:
        raise
    except Exception as error:
        told = _("The unique key of %(name)s cannot be made of these arguments: %(error)s.")
        raise ValueError(told % {"name": definition.name, "error": type(error).__name__}) from None
    try:
        definition.place(args, kwargs, stored=(stored[0], stored[1]))
    except TaskQueueError:
        raise
    except Exception as error:
        told = _("The limits of %(name)s cannot be told for these arguments: %(error)s.")
        raise ValueError(told % {"name": definition.name, "error": type(error).__name__}) from None
