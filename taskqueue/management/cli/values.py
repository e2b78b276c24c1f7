"""Parse typed values: times, durations, JSON, options of tasks, and selections of tasks."""

from __future__ import annotations

import json
import shlex
from argparse import SUPPRESS, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.utils import timezone

from taskqueue.control import TaskFilter
from taskqueue.core.durations import duration_from_text, is_duration
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.options import OPTIONS, options_from_json
from taskqueue.declarations.time_kinds import When
from taskqueue.engine.control.conditions import Described
from taskqueue.engine.control.filters import FILTERS, LIST, MOMENT
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.subcommand import Argument, argument, group, not_empty, one_of
from taskqueue.monitoring.searching.moments import moment as past_moment
from taskqueue.monitoring.searching.search import parse

T = TypeVar("T")
# How a past moment is written, for the help of a flag.
PAST = "such as 14:30, 2026-03-01T12:00+00:00, or 2h for two hours ago"
# How option values are written, for the help of a flag.
VALUES = (
    "a value is JSON, plain text, a duration such as 5m, "
    "backoff='exponential(base=2, cap=600)' or retry_for=ConnectionError,shop.errors.Busy"
)


def duration(text: str) -> timedelta:
    """Read a duration: `90`, `90s`, `250ms`, `10m`, `2h`, `1.5d` or `1w`."""
    try:
        return duration_from_text(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def number_or_duration(text: str) -> float | timedelta:
    """Read a number, or a duration with its unit."""
    with suppress(ValueError):
        return float(text)
    try:
        return duration_from_text(text)
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} is neither a number nor a duration such as 90s, 5m or 2h."
        ) from None


def wall_moment(text: str) -> datetime:
    """Read a datetime in ISO 8601, with or without an offset."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a time such as 2026-03-01T12:00+00:00.") from None


def moment(text: str) -> datetime:
    """Read a datetime in ISO 8601; without an offset, in the project's time zone."""
    typed = wall_moment(text)
    try:
        aware = timezone.make_aware(typed) if timezone.is_naive(typed) else typed
        return aware.astimezone(UTC)
    except OverflowError:
        raise ArgumentTypeError(f"{text!r} must lie in the years 1 to 9999.") from None


def past(text: str) -> datetime:
    """Read a past moment: `14:30`, a date, a datetime, or how long ago it is."""
    try:
        return past_moment(text, now=timezone.now())
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def whole_number(most: int, *, least: int = 1) -> Callable[[str], int]:
    """Return a function that reads a number from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text[:20]) <= most:
            raise ArgumentTypeError(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def _json_value(text: str) -> Any:
    """Read JSON. Raises ValueError if it is not JSON, ArgumentTypeError for other mistakes."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ArgumentTypeError("is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ArgumentTypeError("has a key twice in one object")
    return found


def _json(kind: type[T], called: str) -> Callable[[str], T]:
    def read(text: str) -> T:
        try:
            value = _json_value(text)
        except ValueError as error:
            raise ArgumentTypeError(f"not JSON: {error}") from None
        if not isinstance(value, kind):
            raise ArgumentTypeError(f"must be a JSON {called}")
        return value

    return read


def any_json(text: str) -> Any:
    """Read a flag that takes any JSON value."""
    return _json(object, "value")(text)


# The arguments of a task. Django keeps `args` for itself.
CALL = (
    argument(
        "--args", type=_json(list, "list"), dest="new_args", default=SUPPRESS, metavar="JSON",
        help="a list, such as '[42]'",
    ),
    argument(
        "--kwargs", type=_json(dict, "object"), dest="new_kwargs", default=SUPPRESS,
        metavar="JSON", help="""an object, such as '{"order_id": 42}'""",
    ),
)  # fmt: skip

# Arguments that stand behind the name of what is enqueued, as if it were a shell command.
STRAY = argument("stray", nargs="*", help=SUPPRESS)


def _json_or_text(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return text


def call_of(flags: Namespace) -> dict[str, Any]:
    """Return the arguments that the flags give, as `args` and `kwargs`."""
    if stray := getattr(flags, "stray", ()):
        text = shlex.quote(json.dumps(list(map(_json_or_text, stray)), ensure_ascii=False))
        raise usage_error(f"Give arguments as JSON: --args {text}")
    return {
        name: vars(flags)[f"new_{name}"] for name in ("args", "kwargs") if f"new_{name}" in flags
    }


def point_in_time(*, required: bool = False) -> Argument:
    """Return the flags for the time of a task."""
    return one_of(
        argument(
            "--at", type=moment, dest="run_after", metavar="TIME",
            help="a time such as 2026-03-01T12:00+00:00",
        ),
        argument(
            "--in", type=duration, dest="run_after", metavar="DURATION",
            help="a duration such as 10m",
        ),
        required=required,
    )  # fmt: skip


def options_flag(flag: str, help: str, *, required: bool = False) -> Argument:
    """Return the flag for any option of a task; `options_of` reads it."""
    return argument(
        flag, action="append", type=_option, dest="options", default=[], required=required,
        metavar="OPTION=VALUE", help=help,
    )  # fmt: skip


def _option(text: str) -> tuple[str, Any]:
    """Read a name and a value; a moment without an offset is in the project's time zone."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ArgumentTypeError(f"{text!r} must be OPTION=VALUE")
    with suppress(ValueError):
        return name, _json_value(value)
    is_moment = name in OPTIONS and isinstance(OPTIONS[name].kind, When)
    if is_moment and not is_duration(value):
        with suppress(ArgumentTypeError):
            return name, moment(value)
    return name, value


def options_of(flags: Namespace, flag: str, by_flag: Iterable[str] = ()) -> dict[str, Any]:
    """Return the options for `.using()`, including those with their own flag.

    Raises CommandError if one is given twice.
    """
    counted = Counter(name for name, _ in flags.options)
    if twice := sorted(name for name, times in counted.items() if times > 1):
        raise usage_error(f"{flag} sets {', '.join(twice)} twice. Set each option once.")
    own = {name: value for name in by_flag if (value := getattr(flags, name)) is not None}
    if both := sorted(own.keys() & counted.keys()):
        raise usage_error(f"Give {both[0]} by {flag} or by its own flag, not both.")
    return options_from_json(dict(flags.options) | own)


ALL_AND_SOME = "--all chooses every task: omit it, or the other flags that choose tasks."
NOTHING_SAID = "The query is empty: it chooses no tasks."
# The filters that have their own flag.
BY_FLAG = {name: filter for name, filter in FILTERS.items() if filter.flag}


def _flag(name: str, filter: Described) -> Argument:
    if filter.kind is LIST:
        statuses = [status.value for status in TaskStatus]
        more = "; may be repeated"
        options: dict[str, Any] = {"action": "append", "choices": statuses}
    elif filter.kind is MOMENT:
        more = f", {PAST}"
        options = {"type": past, "metavar": "TIME"}
    else:
        more = ""
        options = {"type": not_empty, "metavar": filter.flag.strip("-").upper()}
    return argument(filter.flag, dest=name, help=filter.help + more, **options)


FILTER_FLAGS = group(
    "which tasks",
    argument(
        "--query", type=not_empty, metavar="QUERY",
        help="as in the admin's search, such as 'status:failed name:mail.*'; combined with AND",
    ),
    *(_flag(name, filter) for name, filter in BY_FLAG.items()),
)  # fmt: skip
SELECTION = (
    argument("ids", nargs="*", metavar="ID"),
    FILTER_FLAGS,
    group(
        "many at once",
        argument("--all", action="store_true", help="choose every task"),
        argument("--dry-run", action="store_true", help="only count, change nothing"),
        argument(
            "--yes",
            action="store_true",
            help="confirm the action; for ids, required if a lost worker holds the task",
        ),
    ),
)


def filter_of(flags: Namespace, *, everything: bool) -> TaskFilter:
    """Return the filter that the flags describe. Raises ValueError."""
    chosen = {name: value for name in BY_FLAG if (value := getattr(flags, name))}
    searched = parse(flags.query, now=timezone.now()).which.given if flags.query else {}
    if twice := sorted(chosen.keys() & searched.keys()):
        raise usage_error(f"Both the query and a flag give {', '.join(twice)}.")
    if everything == bool({**searched, **chosen}.keys() - {"everything"}):
        raise usage_error(ALL_AND_SOME if everything else NOTHING_SAID)
    return TaskFilter(**{**searched, **chosen, "everything": everything})


def has_filters(flags: Namespace) -> bool:
    """Return whether flags choose tasks by their properties."""
    return bool(flags.query) or any(getattr(flags, name) for name in BY_FLAG)
