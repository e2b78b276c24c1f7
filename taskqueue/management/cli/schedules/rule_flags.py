"""Flags for a schedule rule: one for its kind, others for its details."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django.utils import timezone

from taskqueue import rules
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.subcommand import Argument, argument, group, one_of
from taskqueue.management.cli.values import duration, wall_moment
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once, Rule
from taskqueue.rules.wall_clock import zone, zone_name

Reader = Callable[[str], Any]
# The word that removes a limit.
NONE = "none"
OFFSETS = (
    "Times without an offset are in the rule's zone, --tz; with --every, --after-end and --once "
    "without --tz, in the project's."
)


def _window(text: str) -> dict[str, str]:
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not (first and dash and last):
        raise ArgumentTypeError(f"{text!r} is not a daily window such as 09:00-17:30.")
    return {"first": first, "last": last}


def _interval(text: str) -> dict[str, timedelta]:
    return {"interval": duration(text)}


def _limit(text: str) -> datetime | str:
    return NONE if text.strip() == NONE else wall_moment(text)


# By the kind of a rule: its flag, and how the flag sets some of its parameters.
KINDS: dict[str, tuple[str, Reader, str, str]] = {
    Cron.kind: (
        "--cron", lambda text: {"expression": text}, "EXPRESSION",
        'such as "0 6 * * 1-5"; a sixth field is for seconds',
    ),
    Every.kind: ("--every", _interval, "DURATION", "an interval such as 90s, 10m, 2h or 1d"),
    AfterEnd.kind: (
        "--after-end", _interval, "DURATION", "an interval after the end of the last run"
    ),
    DailyWindow.kind: (
        "--daily", _window, "FROM-TO",
        "within these hours each day, such as 09:00-17:30, every --step",
    ),
    Once.kind: (
        "--once", lambda text: {"at": wall_moment(text)}, "TIME",
        "a single time, such as 2026-12-01T09:00+00:00",
    ),
}  # fmt: skip
# The flags of the other parameters.
REFINING: dict[str, tuple[str, Reader, str, str]] = {
    "tz": (
        "--tz", str, "ZONE",
        "with --cron, --daily: such as Europe/Berlin; default: UTC. "
        "With --once: the zone of its time",
    ),
    "every": ("--step", duration, "DURATION", "with --daily: interval from FROM on, such as 30m"),
    "days": ("--days", str, "DAYS", "with --daily: mon-fri or mon,wed; default: every day"),
    "start": ("--start", _limit, "TIME", "no run before this time; none for no limit"),
    "end": ("--end", _limit, "TIME", "no run after this time; none for no limit"),
}  # fmt: skip


def _flag(dest: str, flag: str, read: Reader, form: str, help: str) -> Argument:
    # No flag has a default, so that an edit can see which were given.
    return argument(flag, dest=dest, type=read, default=SUPPRESS, metavar=form, help=help)


def _of_kind(kind: str, read: Reader) -> Reader:
    return lambda text: {"kind": kind, **read(text)}


RULE = (
    group(
        "when",
        one_of(
            *(
                _flag("rule", flag, _of_kind(kind, read), form, help)
                for kind, (flag, read, form, help) in KINDS.items()
            )
        ),
        description="one of these kinds of rules",
    ),
    group(
        "with the rule",
        *(_flag(name, *described) for name, described in REFINING.items()),
        description=OFFSETS,
    ),
)


def has_rule(flags: Namespace) -> bool:
    """Return whether any flag describes a rule."""
    return not vars(flags).keys().isdisjoint({"rule", *REFINING})


def rule_from(flags: Namespace, current: Mapping[str, Any] | None = None) -> Rule:
    """Return the rule that the flags describe, completed by `current`, a stored rule.

    Raises CommandError for flags that cannot be combined, `InvalidSchedule` for wrong values.
    """
    # An unreadable stored rule can still be replaced.
    stored = dict(current) if isinstance(current, Mapping) else {}
    own: dict[str, Any] = getattr(flags, "rule", {})
    kind = own.get("kind") or stored.get("kind")
    if kind not in tuple(KINDS):
        raise usage_error(f"Give a rule: one of {', '.join(flag for flag, *_ in KINDS.values())}.")
    known = rules.KINDS[kind].parts()
    refined = {name: vars(flags)[name] for name in REFINING if name in flags}
    zone_of_once = refined.pop("tz", None) if own and kind == Once.kind else None
    for name in refined:
        if name not in known:
            raise usage_error(f"{REFINING[name][0]} cannot be combined with {KINDS[kind][0]}.")
    kept = {name: value for name, value in stored.items() if name in known}
    values = kept | refined | own | {"kind": kind}
    if kind == DailyWindow.kind and "every" not in values:
        raise usage_error("--daily requires --step: the interval within these hours, such as 30m.")
    tz = zone_of_once or (values.get("tz", "UTC") if "tz" in known else None)
    walls = timezone.get_default_timezone() if tz is None else zone(zone_name("The rule", tz))
    return rules.from_json({name: _stored(value, walls) for name, value in values.items()})


def _stored(value: Any, walls: tzinfo) -> Any:
    """Return the value as stored in a rule; `walls` is the zone of times without an offset."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return _in_utc(value, walls).isoformat()
    return None if value == NONE else value


def _in_utc(moment: datetime, walls: tzinfo) -> datetime:
    """Return the time in UTC; if a wall time occurs twice, the first.

    Raises CommandError for a wall time that the zone skips.
    """
    try:
        utc = (moment if moment.tzinfo else moment.replace(tzinfo=walls)).astimezone(UTC)
        is_left_out = not moment.tzinfo and utc.astimezone(walls).replace(tzinfo=None) != moment
    except OverflowError:
        raise usage_error(f"{moment.isoformat()} must lie in the years 1 to 9999.") from None
    if is_left_out:
        raise usage_error(
            f"{moment.isoformat(' ')} does not exist in {walls}: the clocks are put forward there. "
            "Give another time, or one with its offset."
        )
    return utc
