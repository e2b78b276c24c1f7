"""The part of a schedule's form for its policies."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.schedules.fields import SpanField
from taskqueue.admin.schedules.rule_words import MISSED_WORDS, OVERLAP_WORDS
from taskqueue.core.states import Missed, Overlap
from taskqueue.declarations.scheduled import MOST_FAILURES, MOST_RUNS


class PolicyForm(forms.Form):
    """The fields for its policies."""

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
