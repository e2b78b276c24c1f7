"""The form for the arguments of a bulk action."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.reasons import ReasonField
from taskqueue.admin.tasks.option_fields import WhenField, labelled_options, option_fields
from taskqueue.declarations.option import Use
from taskqueue.engine.control.verb import TaskVerb

CHANGEABLE = {name: labelled_options(Use.CHANGE)[name] for name in ("priority", "queue_name")}


class StartForm(forms.Form):
    """A field for each parameter of the verb, and the reason."""

    def __init__(self, verb: TaskVerb, data: Any = None) -> None:
        super().__init__(data)
        self._changes = ""
        for parameter in verb.parameters:
            if parameter.kind == "moment":
                self.fields[parameter.name] = WhenField(label=gettext_lazy("When"))
            else:
                self._changes = parameter.name
                self.fields |= option_fields(CHANGEABLE, required=False)
        if self._changes:
            kept = gettext_lazy("Left empty, it stays as it is.")
            for field in self.fields.values():
                field.help_text = format_lazy("{} {}", field.help_text, kept)
        self.fields["reason"] = ReasonField()

    def clean(self) -> dict[str, Any]:
        """Put changed options together, for the verb takes them as one argument."""
        given = super().clean() or {}
        if not self._changes:
            return given
        changes = {name: given[name] for name in CHANGEABLE if given.get(name) not in (None, "")}
        if not (changes or self.errors):
            raise forms.ValidationError(_("Give a priority, a queue, or both."))
        return {self._changes: changes, "reason": given["reason"]}
