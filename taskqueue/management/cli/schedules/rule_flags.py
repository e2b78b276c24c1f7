"""Flags for a rule in time: one for its kind, others for its details."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from taskqueue import rules
from taskqueue.management.cli.base import usage_error
from taskqueue.management.cli.times import duration, in_zone, wall_moment, zone_for
from taskqueue.rules import Rule

Reader = Callable[[str], Any]
NONE = "none"
"""The word that removes a limit."""

_LIMITS = {"start", "end"}
_KEYS: dict[str, set[str]] = {
    "cron": {"expression", "tz"} | _LIMITS,
    "every": {"interval"} | _LIMITS,
    "after_end": {"interval"} | _LIMITS,
    "daily_window": {"first", "last", "every", "days", "tz"} | _LIMITS,
    "once": {"at"},
}
_FLAGS = {
    "cron": "--cron", "every": "--every", "after_end": "--after-end", "daily_window": "--daily",
    "once": "--once",
}  # fmt: skip
_REFINING = {"tz": "tz", "step": "every", "days": "days", "start": "start", "end": "end"}
"""The keys of a stored rule by flag, besides those of the kind."""


def window(text: str) -> tuple[str, str]:
    """Read the first and the last time of a daily window. Raises ArgumentTypeError."""
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not (first and dash and last):
        raise ArgumentTypeError(f"{text!r} is not a daily window such as 09:00-17:30.")
    return first, last


def limit(text: str) -> datetime | str:
    """Read a time, or the word for no limit. Raises ArgumentTypeError."""
    return NONE if text.strip() == NONE else wall_moment(text)


KINDS: tuple[tuple[str, Reader, str, str], ...] = (
    ("--cron", str, "EXPRESSION", 'such as "0 6 * * 1-5"; a sixth field is for seconds'),
    ("--every", duration, "DURATION", "an interval such as 90s, 10m, 2h or 1d"),
    ("--after-end", duration, "DURATION", "an interval after the end of the last run"),
    (
        "--daily",
        window,
        "FROM-TO",
        "within these hours each day, such as 09:00-17:30, every --step",
    ),
    ("--once", wall_moment, "TIME", "a single time, such as 2026-12-01T09:00+00:00"),
)
OFFSETS = (
    "Times without an offset are in the rule's zone, --tz; with --every, --after-end and --once "
    "without --tz, in the project's."
)
REFINING: tuple[tuple[str, Reader, str, str], ...] = (
    (
        "--tz",
        str,
        "ZONE",
        "with --cron, --daily: such as Europe/Berlin; default: UTC. "
        "With --once: the zone of its time",
    ),
    ("--step", duration, "DURATION", "with --daily: interval from FROM on, such as 30m"),
    ("--days", str, "DAYS", "with --daily: mon-fri or mon,wed; default: every day"),
    ("--start", limit, "TIME", "no run before this time; none for no limit"),
    ("--end", limit, "TIME", "no run after this time; none for no limit"),
)


def add_rule(parser: ArgumentParser) -> None:
    """Add flags for a rule. None has a default, so that an edit sees what was given."""
    group = parser.add_argument_group("when", "one of these kinds of rules")
    kind = group.add_mutually_exclusive_group()
    for flag, read, form, text in KINDS:
        kind.add_argument(flag, type=read, default=SUPPRESS, metavar=form, help=text)
    more = parser.add_argument_group("with the rule", OFFSETS)
    for flag, read, form, text in REFINING:
        more.add_argument(flag, type=read, default=SUPPRESS, metavar=form, help=text)


def has_rule(flags: Namespace) -> bool:
    """Whether any flag describes a rule."""
    values_by_flag = vars(flags)
    return _kind_in(values_by_flag) is not None or any(name in values_by_flag for name in _REFINING)


def rule_from(flags: Namespace, current: Mapping[str, Any] | None = None) -> Rule:
    """Return the rule that the flags describe, completed by `current`, a stored rule.

    Raises CommandError for flags that cannot be combined, `InvalidSchedule` for wrong values.
    """
    values_by_flag = vars(flags)
    # A stored rule that cannot be read can be replaced.
    known = dict(current) if isinstance(current, Mapping) else {}
    kind = _kind_in(values_by_flag) or known.get("kind")
    if not isinstance(kind, str) or kind not in _KEYS:
        raise usage_error(f"Give a rule: one of {', '.join(_FLAGS.values())}.")
    stated = {_REFINING[name]: values_by_flag[name] for name in _REFINING if name in values_by_flag}
    own = _own_values(kind, values_by_flag)
    zone_of_once = stated.pop("tz", None) if own and kind == "once" else None
    for name, key in _REFINING.items():
        if key in stated and key not in _KEYS[kind]:
            raise usage_error(f"--{name} cannot be combined with {_FLAGS[kind]}.")
    kept = {key: value for key, value in known.items() if key in _KEYS[kind]}
    values = kept | stated | own | {"kind": kind}
    if kind == "daily_window" and "every" not in values:
        raise usage_error("--daily requires --step: the interval within these hours, such as 30m.")
    zone = _zone_of(kind, values) if zone_of_once is None else zone_for(zone_of_once)
    return rules.from_json({key: _stored(value, zone) for key, value in values.items()})


def _zone_of(kind: str, values: Mapping[str, Any]) -> tzinfo | None:
    """Return the zone of times without an offset; None where there are none."""
    if all(not isinstance(value, datetime) or value.tzinfo for value in values.values()):
        return None
    return zone_for(values.get("tz", "UTC") if "tz" in _KEYS[kind] else None)


def _kind_in(values_by_flag: Mapping[str, Any]) -> str | None:
    """Return the kind whose flag was given."""
    named = {flag[2:].replace("-", "_"): kind for kind, flag in _FLAGS.items()}
    return next((kind for name, kind in named.items() if name in values_by_flag), None)


def _own_values(kind: str, values_by_flag: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values from the flag of the kind; none where it was not given."""
    if kind == "daily_window" and "daily" in values_by_flag:
        first, last = values_by_flag["daily"]
        return {"first": first, "last": last}
    own = {"cron": "expression", "every": "interval", "after_end": "interval", "once": "at"}
    return {own[kind]: values_by_flag[kind]} if kind in values_by_flag else {}


def _stored(value: Any, zone: tzinfo | None) -> Any:
    """Return the value as stored in a rule. Raises CommandError."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return in_zone(value, zone or UTC).isoformat()
    return None if value == NONE else value
