"""The part of a schedule's form for its rule; only fields of the chosen kind are used."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.schedules.fields import MomentField, SpanField
from taskqueue.admin.schedules.rules import KINDS, NEEDED, PARAMETERS, check_zone, rule_of
from taskqueue.declarations.scheduled import LONGEST_NAME, MOST_RUNS
from taskqueue.rules import Cron, Rule
from taskqueue.rules.values import DAYS

WIDE = {"class": "vTextField"}


class RuleForm(forms.Form):
    """The fields of all kinds of rules."""

    kind = forms.ChoiceField(label=_("Kind"), choices=list(KINDS.items()), initial=Cron.kind)
    tz = forms.CharField(
        label=_("Time zone"), initial="UTC", max_length=255,
        widget=forms.TextInput({"list": "taskqueue-zones", **WIDE}),
        help_text=_(
            "Time zone for this rule, and for the times below that have no offset. For example "
            "Europe/Berlin."
        ),
    )  # fmt: skip
    expression = forms.CharField(
        label=_("Expression"), required=False, widget=forms.TextInput(WIDE),
        help_text=_(
            "Minute, hour, day of the month, month, day of the week; an optional sixth field is "
            "the second. For example 0 6 * * mon-fri."
        ),
    )  # fmt: skip
    interval = SpanField(label=_("Interval"), help_text=_("At least 0.05 seconds."))
    first = forms.CharField(
        label=_("First"), required=False, help_text=_("A time of day, such as 09:00.")
    )
    last = forms.CharField(
        label=_("Last"),
        required=False,
        help_text=_("For example 17:30. A time before the first is on the next day."),
    )
    every = SpanField(label=_("Every"), help_text=_("How often within the window."))
    days = forms.MultipleChoiceField(
        label=_("Days"), required=False, initial=list(DAYS),
        choices=list(zip(DAYS, WEEKDAYS_ABBR.values(), strict=True)),
        widget=forms.CheckboxSelectMultiple, help_text=_("Days on which the window begins."),
    )  # fmt: skip
    at = MomentField(label=_("At"), required=False, help_text=_("For example 2026-12-01 09:00."))
    start = MomentField(
        label=_("Start"), required=False,
        help_text=_("Nothing runs before this time. For example 2026-12-01 09:00."),
    )  # fmt: skip
    end = MomentField(label=_("End"), required=False, help_text=_("Nothing runs after this time."))

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        for kind, parameters in PARAMETERS.items():
            for name in set(parameters) - {"tz"}:
                attributes = self.fields[name].widget.attrs
                attributes["data-kinds"] = f"{attributes.get('data-kinds', '')} {kind}".strip()

    def clean_tz(self) -> str:
        """Check that the time zone exists."""
        return check_zone(self.cleaned_data["tz"])

    def clean(self) -> dict[str, Any]:
        """Check the fields together."""
        self.clean_rule()
        return self.cleaned_data

    def clean_rule(self) -> None:
        """Add the rule to the cleaned data, if the fields of its kind are valid."""
        given = self.cleaned_data
        kind = given.get("kind", "")
        used = {"tz", *PARAMETERS.get(kind, ())}
        # Fields that the kind does not use may have any value.
        for field in self.errors.keys() - used:
            if field in self.fields and "data-kinds" in self.fields[field].widget.attrs:
                del self.errors[field]
        if kind and used.isdisjoint(self.errors):
            try:
                given["rule"] = rule_of(kind, given)
            except forms.ValidationError as error:
                self.add_error(None, error)


def rule_typed(given: Any) -> tuple[Rule | None, str]:
    """Return the rule from a form that may be incomplete, or its error."""
    form = RuleForm(given)
    form.full_clean()
    kind = form.cleaned_data.get("kind", "")
    used = ("tz", *PARAMETERS.get(kind, ()))
    if empty := [name for name in used if form.has_error(name, NEEDED)]:
        fields = ", ".join(str(form.fields[name].label) for name in empty)
        return None, gettext("They appear when this is filled in: %(fields)s") % {"fields": fields}
    errors = [str(error) for name in used for error in form.errors.get(name, ())]
    return (None, errors[0]) if errors else (form.cleaned_data.get("rule"), "")


class StartsForm(forms.Form):
    """The other fields on which the starts of runs depend, as in the whole form."""

    name = forms.CharField(required=False, max_length=LONGEST_NAME)
    jitter = SpanField()
    max_runs = forms.IntegerField(required=False, min_value=1, max_value=MOST_RUNS)


def starts_typed(given: Any) -> dict[str, Any]:
    """Return these values from a form that may be incomplete; invalid ones are left out."""
    form = StartsForm(given)
    form.full_clean()
    return {
        "name": form.cleaned_data.get("name", ""),
        "jitter": form.cleaned_data.get("jitter"),
        "max_runs": form.cleaned_data.get("max_runs"),
    }
