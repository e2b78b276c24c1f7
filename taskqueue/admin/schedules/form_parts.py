"""Parts of the form of a schedule: the fields of its rule, and of its policies."""

from __future__ import annotations

from django import forms
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.schedules.fields import MomentField, SpanField
from taskqueue.admin.schedules.rule_words import MISSED_WORDS, OVERLAP_WORDS
from taskqueue.admin.schedules.rules import KINDS, check_zone
from taskqueue.core.states import Missed, Overlap
from taskqueue.declarations.scheduled import MOST_FAILURES, MOST_RUNS
from taskqueue.rules import Cron
from taskqueue.rules.values import DAYS

WIDE = {"class": "vTextField"}


class RuleFields(forms.Form):
    """The fields of all kinds of rules; those of the chosen kind count."""

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

    def clean_tz(self) -> str:
        """Check that the time zone exists."""
        return check_zone(self.cleaned_data["tz"])


class PolicyFields(forms.Form):
    """The fields of how a schedule behaves."""

    missed = forms.ChoiceField(
        label=_("Missed"), choices=list(MISSED_WORDS.items()), initial=Missed.LATEST.value,
        help_text=_("How to handle missed runs: those due while no worker served the schedule."),
    )  # fmt: skip
    missed_window = SpanField(
        label=_("Missed window"), help_text=_("How late a missed run may start, for “window”.")
    )
    overlap = forms.ChoiceField(
        label=_("Overlap"), choices=list(OVERLAP_WORDS.items()), initial=Overlap.SKIP.value,
        help_text=_("What to do if a run comes due before an earlier one has finished."),
    )  # fmt: skip
    pause_after_failures = forms.IntegerField(
        label=_("Pause after failures"), required=False, min_value=1, max_value=MOST_FAILURES,
        help_text=_("Pause the schedule after this many failed runs in a row. Empty: never."),
    )  # fmt: skip
    jitter = SpanField(
        label=_("Jitter"),
        help_text=_(
            "Start each run up to this long after its time; its name and the time decide how long. "
            "Empty: at its time."
        ),
    )
    max_runs = forms.IntegerField(
        label=_("Runs at most"), required=False, min_value=1, max_value=MOST_RUNS,
        help_text=_("The schedule is over after this many runs of its rule. Empty: never."),
    )  # fmt: skip
