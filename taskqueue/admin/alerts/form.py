"""The form of an alert rule."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import MANAGE_WEBHOOKS
from taskqueue.admin.acts import ReasonField
from taskqueue.admin.alerts.words import KINDS, SCOPES
from taskqueue.admin.webhooks.forms import endpoint_title
from taskqueue.core.alerts import KINDS as DETAILS
from taskqueue.core.alerts import AlertKind
from taskqueue.core.durations import duration_as_text, duration_from_text
from taskqueue.models import AlertRule
from taskqueue.models.alert import LONGEST_RULE_NAME, LONGEST_SUBJECT, LONGEST_URL
from taskqueue.monitoring.read_models.webhook import MOST_ENDPOINTS, endpoint_rows

SEPARATORS = re.compile(r"[\s,;]+")


class ListField(forms.CharField):
    """Several texts, separated by spaces, commas or line breaks."""

    widget = forms.Textarea(attrs={"rows": 2, "cols": 60})

    def prepare_value(self, value: Any) -> Any:
        """Return the texts as they are typed."""
        return ", ".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Return the texts."""
        return [each for each in SEPARATORS.split(super().to_python(value) or "") if each]

    def validate(self, value: Any) -> None:
        """Leave this to the verb."""

    def run_validators(self, value: Any) -> None:
        """Leave this to the verb."""


class DurationField(forms.CharField):
    """A duration as typed text, such as `90`, `15m` or `2h`."""

    mistake = _("Enter a duration such as 90s, 15m or 2h.")

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=40, **options)

    def prepare_value(self, value: Any) -> Any:
        """Return the duration as it is typed."""
        return duration_as_text(value) if isinstance(value, timedelta) else value

    def to_python(self, value: Any) -> Any:
        """Return a timedelta; None for an empty field."""
        text = super().to_python(value)
        if not text:
            return None
        try:
            return duration_from_text(text)
        except ValueError:
            raise ValidationError(self.mistake) from None

    def run_validators(self, value: Any) -> None:
        """Leave this to the verb."""


class ThresholdField(DurationField):
    """A number, or a duration."""

    mistake = _("Enter a number, or a duration such as 90s, 15m or 2h.")

    def to_python(self, value: Any) -> Any:
        """Return a number or a timedelta; None for an empty field."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            return super().to_python(value)
        if not math.isfinite(number):
            raise ValidationError(self.mistake)
        return number


class RuleForm(forms.Form):
    """All fields; for an empty number, the kind's own applies."""

    name = forms.CharField(label=_("Name"), max_length=LONGEST_RULE_NAME)
    kind = forms.ChoiceField(label=_("Condition"), choices=list(KINDS.items()))
    scope = forms.ChoiceField(label=_("Scope"), choices=list(SCOPES.items()), initial="all")
    pattern = forms.CharField(
        label=_("Pattern"), required=False, max_length=LONGEST_SUBJECT, strip=False,
        help_text=_("Of the names in this scope, such as mail*."),
    )  # fmt: skip
    threshold = ThresholdField(
        label=_("Threshold"),
        help_text=_(
            "Empty: the default of the condition. Times are written as 90s, 15m or 2h; shares are "
            "from 0 to 1."
        ),
    )
    window = DurationField(label=_("How long to look back"), help_text=_("Such as 15m."))
    wait = DurationField(label=_("How long it has to hold"), help_text=_("Such as 90s."))
    repeat = DurationField(label=_("Time between reminders"), help_text=_("Such as 4h."))
    mail = ListField(
        label=_("Mail to"), required=False, help_text=_("Addresses, separated by commas.")
    )
    endpoints = ListField(
        label=_("Endpoints"), required=False, help_text=_("The ids of webhook endpoints.")
    )
    url = forms.CharField(
        label=_("URL of a heartbeat"), required=False, max_length=LONGEST_URL,
        help_text=_("It is called while all is well."),
    )  # fmt: skip
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)
    reason = ReasonField()
    # When the rule was last changed, as the page showed it.
    seen = forms.CharField(required=False, widget=forms.HiddenInput, max_length=40)

    def __init__(self, *args: Any, viewer: Any, row: AlertRule | None = None, **more: Any) -> None:
        if row is not None:
            more["initial"] = {
                "name": row.name, "kind": row.kind, "scope": row.scope, "pattern": row.pattern,
                "threshold": _threshold(row), "window": _span(row.window_seconds),
                "wait": _span(row.for_seconds), "repeat": _span(row.repeat_seconds),
                "mail": "\n".join(row.channels.get("mail", ())),
                "endpoints": row.channels.get("endpoints", []), "url": row.url,
                "enabled": row.is_enabled, "seen": row.changed_at.isoformat(),
            }  # fmt: skip
        super().__init__(*args, **more)
        # Others cannot see which endpoints there are.
        if viewer.has_perm(MANAGE_WEBHOOKS):
            rows = endpoint_rows()[:MOST_ENDPOINTS]
            self.fields["endpoints"] = forms.MultipleChoiceField(
                label=_("Endpoints"), required=False, widget=forms.CheckboxSelectMultiple,
                choices=[(str(each.pk), f"{endpoint_title(each)} ({each.pk})") for each in rows],
                help_text=_("Webhook endpoints that receive its alerts."),
            )  # fmt: skip
        if row is not None:
            del self.fields["name"]

    @property
    def given(self) -> dict[str, Any]:
        """Return the fields as arguments of the verbs."""
        without = ("name", "reason", "seen")
        return {name: value for name, value in self.cleaned_data.items() if name not in without}


def _threshold(row: AlertRule) -> float | timedelta | None:
    is_time = row.kind in DETAILS and DETAILS[AlertKind(row.kind)].unit == "seconds"
    return _span(row.threshold) if is_time else row.threshold


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
