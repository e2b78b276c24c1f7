"""The bodies of requests that create, edit and run schedules."""

from __future__ import annotations

from rest_framework import serializers

from taskqueue.api.fields import Anything, Flag, Reasoned, Seconds, Text, Whole
from taskqueue.api.rules import RuleField
from taskqueue.api.tasks.option_fields import StoredOptions
from taskqueue.core.states import Missed, Overlap
from taskqueue.declarations.scheduled import LONGEST_JITTER, LONGEST_NAME, MOST_FAILURES, MOST_RUNS


class ScheduleEdited(Reasoned):
    """The changes; fields that are left out keep their values."""

    task = Text(required=False, help_text="The name of a task type or workflow.")
    rule = RuleField(required=False)
    args = serializers.ListField(child=Anything(allow_null=True), required=False)
    kwargs = serializers.DictField(child=Anything(allow_null=True), required=False)
    options = StoredOptions(required=False, help_text="Replace the options of the task type.")
    missed = serializers.ChoiceField(
        choices=[each.value for each in Missed], required=False,
        help_text="How to handle missed runs: times that passed while no worker ran.",
    )  # fmt: skip
    missed_window = Seconds(
        required=False, allow_null=True, min_value=1,
        help_text="For `missed: window`: how late a run may start.",
    )  # fmt: skip
    overlap = serializers.ChoiceField(
        choices=[each.value for each in Overlap], required=False,
        help_text="What to do at a time at which an earlier run has not finished.",
    )  # fmt: skip
    pause_after_failures = Whole(
        required=False, allow_null=True, min_value=1, max_value=MOST_FAILURES
    )
    jitter = Seconds(
        required=False, allow_null=True, min_value=0.001,
        max_value=LONGEST_JITTER.total_seconds(),
        help_text="Start each run up to so much after its nominal time; null: at that time.",
    )  # fmt: skip
    max_runs = Whole(
        required=False, allow_null=True, min_value=1, max_value=MOST_RUNS,
        help_text="The runs of its rule after which it is over; null: never.",
    )  # fmt: skip
    enabled = Flag(required=False)


class ScheduleCreated(ScheduleEdited):
    """A new schedule."""

    name = Text(max_length=LONGEST_NAME, help_text="Unique, without `/`; it cannot be changed.")
    task = Text(help_text="The name of a task type or workflow.")
    rule = RuleField()


class RunAsked(Reasoned):
    """The arguments of this run alone."""

    args = serializers.ListField(
        child=Anything(allow_null=True), required=False,
        help_text="In place of those of the schedule.",
    )  # fmt: skip
    kwargs = serializers.DictField(
        child=Anything(allow_null=True), required=False,
        help_text="In place of those of the schedule.",
    )  # fmt: skip
