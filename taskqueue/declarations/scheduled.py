"""A declared schedule: its rule, name, arguments, options and policies, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, pairwise
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.core.states import Missed, Overlap
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.payload import check_text
from taskqueue.declarations.time_kinds import check_duration
from taskqueue.exceptions import Duration, InvalidSchedule, InvalidTask
from taskqueue.rules import Rule
from taskqueue.rules.base import LAST

LONGEST_NAME = 255
MOST_FAILURES = MOST_RUNS = 2**31 - 1
LONGEST_JITTER = timedelta(days=1)
# The times of a rule whose intervals are compared with a jitter.
SOME_TIME, MOST_COMPARED = datetime(2026, 1, 1, tzinfo=UTC), 20
# The policies by which several times that come together all run.
RUN_LATE, RUN_EACH = (Missed.ALL, Missed.WINDOW), (Overlap.ALLOW, Overlap.QUEUE_ALL)


@dataclass(frozen=True)
class Scheduled:
    """A rule with the arguments, options and policies of its runs; for `@task(schedule=...)`.

    `name` is unique in the project; it defaults to the task's name. `options` are those of
    `.using(...)`. `missed_window` is in seconds or a timedelta. `pause_after_failures`
    counts failed tasks in a row. `jitter`, in seconds or a timedelta, delays each run by up to
    this much after its nominal time. After `max_runs` runs the schedule is over.
    """

    rule: Rule
    _: KW_ONLY
    name: str = ""
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    missed: str = Missed.LATEST.value
    missed_window: Duration | None = None
    overlap: str = Overlap.SKIP.value
    pause_after_failures: int | None = None
    jitter: Duration | None = None
    max_runs: int | None = None
    enabled: bool = True


def check_policies(scheduled: Scheduled) -> None:
    """Raise `InvalidSchedule` for unknown policies, and for policies that exclude each other."""
    _check_choice("missed", scheduled.missed, Missed)
    _check_choice("overlap", scheduled.overlap, Overlap)
    if (scheduled.missed == Missed.WINDOW) != (scheduled.missed_window is not None):
        raise InvalidSchedule(_(
            "missed='window' needs missed_window, and missed_window needs missed='window'."
        ))  # fmt: skip
    if scheduled.missed_window is not None:
        window_of(scheduled.missed_window)
    _check_count("pause_after_failures", scheduled.pause_after_failures)
    _check_count("max_runs", scheduled.max_runs)
    if scheduled.jitter is not None:
        jitter_of(scheduled.jitter)


def check_jitter(scheduled: Scheduled) -> None:
    """Raise `InvalidSchedule` if its jitter is too long for its rule.

    Not part of the other checks: a stored schedule that older code let in must stay editable.
    """
    if scheduled.jitter is not None:
        check_spread(scheduled, jitter_of(scheduled.jitter))


def window_of(value: Any) -> timedelta:
    """Return the window as a timedelta. Raises `InvalidSchedule`."""
    return _duration_of("missed_window", value, lowest=1.0)


def jitter_of(value: Any) -> timedelta:
    """Return the jitter as a timedelta. Raises `InvalidSchedule`."""
    jitter = _duration_of("jitter", value, lowest=0.001)
    if jitter > LONGEST_JITTER:
        raise InvalidSchedule(_("jitter must be at most one day, not {jitter}.", jitter=jitter))
    return jitter


def check_spread(scheduled: Scheduled, jitter: timedelta) -> None:
    """Raise `InvalidSchedule` for a jitter that is longer than the interval of the rule.

    Times that then start at the same moment are looked at together, and most of them would be
    missed. Not where all missed times are to run, nor where the interval counts from the last end.
    """
    longest = max(_intervals(scheduled.rule), default=jitter)
    if jitter > longest and scheduled.missed != Missed.ALL and not _runs_together(scheduled):
        raise InvalidSchedule(_(
            "jitter must be at most the interval of the rule, {longest}, not {jitter}: with a "
            "longer one most runs are missed. Shorten it, or choose missed='all' with "
            "overlap='queue_all'.",
            longest=longest, jitter=jitter,
        ))  # fmt: skip


def exceeded_interval(scheduled: Scheduled) -> timedelta | None:
    """Return the shortest interval of its rule if its jitter is longer; None otherwise.

    None too where all the times that start at one moment run. Raises `InvalidSchedule` for what is
    no jitter.
    """
    if scheduled.jitter is None or _runs_together(scheduled):
        return None
    shortest = min(_intervals(scheduled.rule), default=LONGEST_JITTER)
    return shortest if jitter_of(scheduled.jitter) > shortest else None


def _runs_together(scheduled: Scheduled) -> bool:
    """Return whether times that start at the same moment all run."""
    return scheduled.missed in RUN_LATE and scheduled.overlap in RUN_EACH


def _intervals(rule: Rule) -> list[timedelta]:
    """Return the first intervals of the rule; none if they count from the last end."""
    if rule.waits_for_end:
        return []
    times = islice(rule.between(SOME_TIME, LAST), MOST_COMPARED)
    return [later - time for time, later in pairwise(times)]


def as_invalid(error: Exception) -> InvalidSchedule:
    """Return the error of what a schedule runs as one of the schedule, about the same field."""
    return InvalidSchedule(why(error), path=getattr(error, "path", ()))


def _duration_of(name: str, value: Any, *, lowest: float) -> timedelta:
    try:
        return check_duration(name, value, lowest=lowest)
    except InvalidTask as error:
        raise InvalidSchedule(why(error)) from None


def _check_count(name: str, count: object) -> None:
    if count is not None and (
        isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_FAILURES
    ):
        raise InvalidSchedule(_(
            "{name} must be a whole number of 1 or more, not {count!r}.", name=name, count=count
        ))  # fmt: skip


def _check_choice(name: str, value: object, choices: type[StrEnum]) -> None:
    known = [choice.value for choice in choices]
    if not isinstance(value, str) or value not in known:
        hint = did_you_mean(str(value), known)
        raise InvalidSchedule(_(
            "{name} must be one of {names}, not {value!r}.{hint}",
            name=name, names=', '.join(known), value=value, hint=hint,
        ))  # fmt: skip


def check_name(name: Any) -> str:
    """Return the name. Raises `InvalidSchedule` if no schedule can have it."""
    try:
        text = check_text(name, limit=LONGEST_NAME, what="The name of a schedule")
    except (TypeError, ValueError) as error:
        raise InvalidSchedule(why(error)) from None
    if not text or not text.isprintable() or text != text.strip() or "/" in text:
        raise InvalidSchedule(_(
            "The name of a schedule must be printable text without '/' or surrounding spaces, not "
            "{text!r}.",
            text=text,
        ))  # fmt: skip
    if text in (".", ".."):
        raise InvalidSchedule(_(
            "A schedule cannot be named {text!r}: no URL can address it.", text=text
        ))  # fmt: skip
    return text


def scheduled_of(value: Any) -> tuple[Scheduled, ...]:
    """Return the value of `@task(schedule=...)` as a tuple; the system checks check it later."""
    if value is None:
        return ()
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    rules = tuple(value) if several else (value,)
    return tuple(item if isinstance(item, Scheduled) else Scheduled(item) for item in rules)
