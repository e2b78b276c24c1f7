"""Turn the fields of the schedule's form into a rule, and a rule into fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.display import in_zone
from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once, Rule
from taskqueue.rules.zones import zone_name

KINDS = {
    Cron.kind: gettext_lazy("cron: an expression"),
    Every.kind: gettext_lazy("every: at a fixed interval"),
    AfterEnd.kind: gettext_lazy("after end: an interval after the last run has finished"),
    DailyWindow.kind: gettext_lazy("daily window: at an interval between two times of day"),
    Once.kind: gettext_lazy("once: at one time"),
}
USED = {
    Cron.kind: ("expression",),
    Every.kind: ("interval",),
    AfterEnd.kind: ("interval",),
    DailyWindow.kind: ("first", "last", "step", "days"),
    Once.kind: ("at",),
}
"""The fields that a kind needs, besides time zone, start and end."""
LIMITED = (Cron.kind, Every.kind, AfterEnd.kind, DailyWindow.kind)
FIELDS = {"every": "step", "the": "interval"}
"""Fields whose names differ between the rule and the form."""


def kinds_of(field: str) -> str:
    """Return the kinds that use a field, as the form's script reads them."""
    if field in ("start", "end"):
        return " ".join(LIMITED)
    return " ".join(kind for kind, fields in USED.items() if field in fields)


def rule_of(kind: str, given: Mapping[str, Any]) -> Rule:
    """Return the rule of the form's fields, checked.

    Raises ValidationError, by the field that it is about.
    """
    if missing := [name for name in USED[kind] if given.get(name) in (None, "", [])]:
        needed = _("Required for this kind of rule.")
        raise ValidationError(dict.fromkeys(missing, needed))
    rule = _built(kind, given)
    try:
        rule.check()
    except InvalidSchedule as error:
        raise ValidationError({_field(kind, str(error)): str(error)}) from None
    return rule


def _built(kind: str, given: Mapping[str, Any]) -> Rule:
    tz = given["tz"]
    names = ("start", "end") if kind in LIMITED else ()
    limits: dict[str, Any] = {name: moment_in(tz, name, given.get(name)) for name in names}
    if kind == Cron.kind:
        return Cron(given["expression"], tz, **limits)
    if kind == Every.kind:
        return Every(given["interval"], **limits)
    if kind == AfterEnd.kind:
        return AfterEnd(given["interval"], **limits)
    if kind == DailyWindow.kind:
        return DailyWindow(
            given["first"], given["last"], every=given["step"], days=given["days"], tz=tz, **limits
        )
    return Once(moment_in(tz, "at", given["at"]))  # type: ignore[arg-type]  # (it is required)


def moment_in(tz: str, field: str, moment: datetime | None) -> datetime | None:
    """Return an aware moment; one without an offset is in the zone, the first if it occurs twice.

    Raises ValidationError, by its field, for one that the zone leaves out.
    """
    if moment is None or moment.tzinfo is not None:
        return moment
    zone = ZoneInfo(tz)
    aware = moment.replace(tzinfo=zone)
    try:
        is_left_out = aware.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment
    except OverflowError:  # The rule tells that it lies outside of the calendar.
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
    """Return the field that an error of the rule is about."""
    found = re.match(r"\w+: (\w+)", error)
    name = FIELDS.get(found[1], found[1]) if found else ""
    known = (*USED[kind], "tz", *(("start", "end") if kind in LIMITED else ()))
    return name if name in known else USED[kind][0]


def check_zone(name: str) -> str:
    """Return the name of the time zone. Raises ValidationError."""
    try:
        return zone_name("The rule", name)
    except InvalidSchedule as error:
        raise ValidationError(str(error)) from None


def zone_of(rule: Rule) -> str:
    """Return the time zone in which the rule is shown."""
    zone = str(getattr(rule, "tz", "") or timezone.get_current_timezone_name())
    try:
        return zone_name("The rule", zone)
    except InvalidSchedule:  # A project may have activated an offset that has no name.
        return "UTC"


def initial_of(rule: Rule) -> dict[str, Any]:
    """Return the form's fields for the rule."""
    tz = zone_of(rule)
    values: dict[str, Any] = {"kind": rule.kind, "tz": tz}
    if isinstance(rule, Cron):
        values["expression"] = rule.expression
    elif isinstance(rule, Every | AfterEnd):
        values["interval"] = rule.interval
    elif isinstance(rule, DailyWindow):
        values["step"], values["days"] = rule.every, list(rule.days)
        values["first"], values["last"] = rule.first.isoformat(), rule.last.isoformat()
    elif isinstance(rule, Once):
        values["at"] = _written(tz, rule.at)
    if rule.kind in LIMITED:
        values |= {"start": _written(tz, rule.start), "end": _written(tz, rule.end)}
    return values


def _written(tz: str, moment: datetime | None) -> str:
    """Write a moment with its offset, so that it is read back as the same moment."""
    return "" if moment is None else in_zone(moment, ZoneInfo(tz)).isoformat(" ")
