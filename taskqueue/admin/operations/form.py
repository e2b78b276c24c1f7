"""The form that starts an operation: its verb, its parameters and the reason."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.acts import ReasonField
from taskqueue.admin.tasks.option_fields import (
    WhenField,
    changeable_options,
    given_options,
    option_fields,
)
from taskqueue.declarations.option import Use
from taskqueue.engine.control.task_verbs import NOT_IN_BACKGROUND
from taskqueue.engine.control.verb import TaskVerb

CHANGEABLE = {
    name: option
    for name, option in changeable_options(Use.CHANGE, Use.EDIT).items()
    if name not in NOT_IN_BACKGROUND
}
# Verbs that can be undone.
CLEARED = {name: option for name, option in CHANGEABLE.items() if option.default is None}
CLEAR = "clear"


class StartForm(forms.Form):
    """A field for each parameter of the verb, and the reason."""

    def __init__(self, verb: TaskVerb, data: Any = None) -> None:
        super().__init__(data)
        self._changes = ""
        for parameter in verb.parameters:
            if parameter.kind == "moment":
                when = self.fields[parameter.name] = WhenField(label=gettext_lazy("When"))
                zone = gettext_lazy("In the time zone of the admin.")
                when.help_text = format_lazy("{} {}", when.help_text, zone)
            else:
                self._changes = parameter.name
                self.fields |= option_fields(CHANGEABLE, required=False)
                self.fields["metadata"].initial = ""
        if self._changes:
            self.fields[CLEAR] = forms.MultipleChoiceField(
                required=False, label=gettext_lazy("Reset to the default"),
                widget=forms.CheckboxSelectMultiple,
                help_text=gettext_lazy("The default is the value of the settings, or none."),
                choices=[(name, gettext_lazy(each.label)) for name, each in CLEARED.items()],
            )  # fmt: skip
        self.fields["reason"] = ReasonField()

    def clean(self) -> dict[str, Any]:
        """Combine changed options, because the verb takes them as one argument."""
        given = super().clean() or {}
        if not self._changes:
            return given
        changes = given_options(given, CHANGEABLE)
        for name in given.get(CLEAR, ()):
            if name in changes:
                self.add_error(name, _("Give a value or reset it, not both."))
            changes[name] = None
        if not (changes or self.errors):
            raise forms.ValidationError(_("Give at least one option."))
        return {self._changes: changes, "reason": given["reason"]}
