"""The form of an alert rule."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.acts import ReasonField
from taskqueue.admin.alerts.words import KINDS, SCOPES
from taskqueue.core.alerts import LARGEST
from taskqueue.engine.alerts.editing import BOUNDS
from taskqueue.models import AlertRule
from taskqueue.models.alert import LONGEST_RULE_NAME, LONGEST_SUBJECT, LONGEST_URL

SEPARATORS = re.compile(r"[\s,;]+")


class ListField(forms.CharField):
    """Several texts, separated by spaces, commas or line breaks."""

    widget = forms.Textarea(attrs={"rows": 2, "cols": 60})

    def to_python(self, value: Any) -> Any:
        """Return the texts."""
        return [each for each in SEPARATORS.split(super().to_python(value) or "") if each]

    def validate(self, value: Any) -> None:
        """Leave it to the verb."""

    def run_validators(self, value: Any) -> None:
        """Leave it to the verb."""


def _seconds(name: str, label: Any) -> forms.IntegerField:
    least, most = BOUNDS[name]
    return forms.IntegerField(label=label, required=False, min_value=least, max_value=most)


class RuleForm(forms.Form):
    """All fields; empty numbers are those of the kind."""

    name = forms.CharField(label=_("Name"), max_length=LONGEST_RULE_NAME)
    kind = forms.ChoiceField(label=_("Condition"), choices=list(KINDS.items()))
    scope = forms.ChoiceField(label=_("Scope"), choices=list(SCOPES.items()), initial="all")
    pattern = forms.CharField(
        label=_("Pattern"), required=False, max_length=LONGEST_SUBJECT, strip=False,
        help_text=_("Of the names in this scope, such as mail*."),
    )  # fmt: skip
    threshold = forms.FloatField(
        label=_("Threshold"), required=False, min_value=0, max_value=LARGEST,
        help_text=_("Empty: the default of the condition. Shares are from 0 to 1."),
    )  # fmt: skip
    window = _seconds("window", _("Seconds to look back"))
    wait = _seconds("wait", _("Seconds for which it has to hold"))
    repeat = _seconds("repeat", _("Seconds between reminders"))
    mail = ListField(label=_("Mail to"), required=False)
    endpoints = ListField(
        label=_("Endpoints"), required=False, help_text=_("The ids of webhook endpoints.")
    )
    url = forms.CharField(
        label=_("URL of a heartbeat"), required=False, max_length=LONGEST_URL,
        help_text=_("It is called while all is well."),
    )  # fmt: skip
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)
    reason = ReasonField()
    # When the rule was changed last, as the page showed it.
    seen = forms.CharField(required=False, widget=forms.HiddenInput, max_length=40)

    def __init__(self, *args: Any, row: AlertRule | None = None, **more: Any) -> None:
        if row is not None:
            more["initial"] = {
                "name": row.name, "kind": row.kind, "scope": row.scope, "pattern": row.pattern,
                "threshold": row.threshold, "window": row.window_seconds, "wait": row.for_seconds,
                "repeat": row.repeat_seconds, "mail": "\n".join(row.channels.get("mail", ())),
                "endpoints": ", ".join(row.channels.get("endpoints", ())), "url": row.url,
                "enabled": row.is_enabled, "seen": row.changed_at.isoformat(),
            }  # fmt: skip
        super().__init__(*args, **more)
        if row is not None:
            del self.fields["name"]

    @property
    def given(self) -> dict[str, Any]:
        """Return the fields as the verbs take them."""
        without = ("name", "reason", "seen")
        return {name: value for name, value in self.cleaned_data.items() if name not in without}
