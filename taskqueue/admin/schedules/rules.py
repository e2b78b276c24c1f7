"""Converting the fields of the schedule's form to a rule, and a rule to fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from taskqueue import rules
from taskqueue.admin.refusals import refused
from taskqueue.core.refusals import refusal
from taskqueue.display import in_zone
from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once, Rule
from taskqueue.rules.wall_clock import zone_name

KINDS = {
    Cron.kind: gettext_lazy("cron: an expression"),
    Every.kind: gettext_lazy("every: at a fixed interval"),
    AfterEnd.kind: gettext_lazy("after end: an interval after the last run has finished"),
    DailyWindow.kind: gettext_lazy("daily window: at an interval between two times of day"),
    Once.kind: gettext_lazy("once: at one time"),
}
LIMITS = ("start", "end")
# What messages call the rule whose fields they are about.
THE_RULE = refusal(gettext_noop("The rule"))
# The error code of an empty required field.
NEEDED = "needed"
# The parameters of each kind of rule, which are the fields that it uses.
PARAMETERS = {
    Cron.kind: ("expression", "tz", *LIMITS),
    Every.kind: ("interval", *LIMITS),
    AfterEnd.kind: ("interval", *LIMITS),
    DailyWindow.kind: ("first", "last", "every", "days", "tz", *LIMITS),
    Once.kind: ("at",),
}


def rule_of(kind: str, given: Mapping[str, Any]) -> Rule:
    """Return the checked rule from the form's fields.

    Raises ValidationError, by the field with the error.
    """
    values = {name: given.get(name) for name in PARAMETERS[kind]}
    missing = [name for name in values if name not in LIMITS and values[name] in (None, "", [])]
    if missing:
        needed = ValidationError(_("Required for this kind of rule."), code=NEEDED)
        raise ValidationError(dict.fromkeys(missing, needed))
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = moment_in(given["tz"], name, value)
    rule = rules.KINDS[kind](**values)
    try:
        rule.check()
    except InvalidSchedule as error:
        raise ValidationError({_field(kind, str(error)): refused(error)}) from None
    return rule


def moment_in(tz: str, field: str, moment: datetime) -> datetime:
    """Return an aware moment. Without an offset it is in the zone, the first if it occurs twice.

    Raises ValidationError, by its field, for a time that the zone skips.
    """
    if moment.tzinfo is not None:
        return moment
    zone = ZoneInfo(tz)
    aware = moment.replace(tzinfo=zone)
    try:
        is_left_out = aware.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment
    except OverflowError:  # The rule reports that it is outside the calendar.
        return aware
    if is_left_out:
        raise ValidationError(
            {
                field: _(
                    "%(moment)s does not exist in %(zone)s, because the clocks go forward. "
                    "Enter another time, or add an offset."
                )
                % {"moment": moment.isoformat(" "), "zone": tz}
            }
        )
    return aware


def _field(kind: str, error: str) -> str:
    """Return the field to which an error of the rule belongs."""
    found = re.match(r"\w+: (\w+)", error)
    return found[1] if found and found[1] in PARAMETERS[kind] else PARAMETERS[kind][0]


def check_zone(name: str) -> str:
    """Return the name of the time zone. Raises ValidationError."""
    try:
        return zone_name(THE_RULE, name)
    except InvalidSchedule as error:
        raise ValidationError(refused(error)) from None


def zone_of(rule: Rule) -> str:
    """Return the time zone in which the rule is shown."""
    zone = str(getattr(rule, "tz", "") or timezone.get_current_timezone_name())
    try:
        return zone_name(THE_RULE, zone)
    except InvalidSchedule:  # A project may have activated an offset without a name.
        return "UTC"


def initial_of(rule: Rule) -> dict[str, Any]:
    """Return the form's fields for the rule.

    A time is written with its offset, so that it is read as the same time.
    """
    tz = zone_of(rule)
    values = {name: getattr(rule, name) for name in PARAMETERS[rule.kind]}
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = in_zone(value, ZoneInfo(tz)).isoformat(" ")
    return {**values, "kind": rule.kind, "tz": tz}
