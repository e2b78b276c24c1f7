"""Read schedules: by name, in words, with their next times and the reasons not to run."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

from django.db.models import QuerySet

from taskqueue import rules
from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.schedules.times import is_exhausted, starts_to_come
from taskqueue.exceptions import InvalidSchedule, ScheduleDoesNotExist
from taskqueue.models import Schedule
from taskqueue.rules import Rule
from taskqueue.rules.base import LAST

MOST_PREVIEWED = 1000
# If a nominal time is not served for this long, no worker serves the schedule.
OVERDUE = timedelta(seconds=60)


def preview_schedule(name: str, *, count: int = 5) -> list[datetime]:
    """Return when its next runs start, in UTC, as if it were not paused.

    These are its nominal times with its jitter. A schedule that waits for an end has at most one.
    Raises `ScheduleDoesNotExist`.
    """
    schedule = get_schedule(name)
    _check_count(count)
    rule = rules.from_json(schedule.rule)
    rule.check()
    connection = project_connection()
    return next_starts(schedule, rule, dialect_for(connection).now(connection), count=count)


def next_starts(schedule: Schedule, rule: Rule, now: datetime, *, count: int) -> list[datetime]:
    """Return when the next runs of a schedule with that rule start, as if it were not paused."""
    if not schedule.is_active or schedule.next_at is None:
        return []
    if rule.waits_for_end:
        return [schedule.next_at]
    return starts_to_come(schedule, rule, now, count=count)


def due_at(schedule: Schedule) -> datetime | None:
    """Return the next time that starts a run; None if it is inactive, or paused and skips times."""
    return schedule.next_at if schedule.is_active and schedule.paused_at is None else None


def preview_rule(rule: Rule, *, count: int = 5, after: datetime) -> list[datetime]:
    """Return the next nominal times of a rule after that moment, in UTC.

    Raises `InvalidSchedule`.
    """
    _check_count(count)
    rule.check()
    return list(islice(rule.between(after, LAST), 1 if rule.waits_for_end else count))


def preview_typed(
    rule: Rule,
    known: Schedule | None,
    *,
    name: str,
    jitter: timedelta | None,
    max_runs: int | None,
    count: int,
    now: datetime,
) -> list[datetime]:
    """Return when runs of a schedule that is being edited would start. Raises `InvalidSchedule`.

    If its rule differs from that of `known`, it counts from now on and has had no runs.
    """
    rule.check()
    goes_on = known is not None and known.rule == rule.as_json()
    schedule = Schedule(
        name=name if known is None else known.name,
        jitter=jitter,
        max_runs=max_runs,
        served_until=known.served_until if known is not None and goes_on else now,
        run_count=known.run_count if known is not None and goes_on else 0,
    )
    return starts_to_come(schedule, rule, now, count=1 if rule.waits_for_end else count)


def _check_count(count: object) -> None:
    if type(count) is not int or not 1 <= count <= MOST_PREVIEWED:
        raise InvalidSchedule(_(
            "count must be between 1 and {most_previewed}, not {count!r}.",
            most_previewed=MOST_PREVIEWED, count=count,
        ))  # fmt: skip


def get_schedule(name: str) -> Schedule:
    """Return its row. Raises `ScheduleDoesNotExist`, which suggests the most similar name."""
    return find(Schedule.objects.using(project_connection().alias), name)


def find(rows: QuerySet[Schedule], name: str) -> Schedule:
    """Return the row of that name.

    Raises `ScheduleDoesNotExist`, which suggests the closest name.
    """
    schedule = rows.filter(name=name).first() if is_storable(name) else None
    if schedule is None:
        names = Schedule.objects.using(rows.db).values_list("name", flat=True)
        hint = did_you_mean(str(name), list(names[:MOST_PREVIEWED]))
        raise ScheduleDoesNotExist(_("There is no schedule {name!r}.{hint}", name=name, hint=hint))
    return schedule


def rule_of(schedule: Schedule) -> Rule | None:
    """Return the rule; None if this version cannot read it."""
    try:
        rule = rules.from_json(schedule.rule)
        rule.check()
    except Exception:  # A page that shows many schedules must not fail because of one.
        return None
    return rule


def rule_text(schedule: Schedule) -> str:
    """Return the rule in words, or why there are none."""
    try:
        return rules.from_json(schedule.rule).text
    except InvalidSchedule as error:
        return f"A rule that cannot be read: {error}"
    except Exception as error:  # A page that shows many schedules must not fail because of one.
        return f"A rule that cannot be read ({type(error).__name__})."


def zone_of(rule: Rule | None) -> str:
    """Return the time zone whose wall clock the rule uses; UTC if it uses none."""
    return str(getattr(rule, "tz", "UTC"))


def conditions(schedule: Schedule, now: datetime) -> list[str]:
    """Return everything that keeps a schedule from running, the worst first; empty if it is active.

    `removed` from the code, `disabled`, in `trouble`, `paused`; `over` if its rule has no future
    time or has had all its runs; `overdue` if no worker serves it, unless it is paused.
    """
    is_paused = schedule.paused_at is not None
    found = {
        "removed": schedule.removed_at is not None,
        "disabled": not schedule.is_enabled,
        "trouble": bool(schedule.trouble),
        "paused": is_paused,
        "over": schedule.is_active and schedule.next_at is None and _is_over(schedule, now),
        "overdue": schedule.is_active and not is_paused and _is_late(schedule, now),
    }
    return [name for name, holds in found.items() if holds]


def _is_late(schedule: Schedule, now: datetime) -> bool:
    return schedule.next_at is not None and schedule.next_at < now - OVERDUE


def _is_over(schedule: Schedule, now: datetime) -> bool:
    """Return whether the schedule has no next time, other than because it waits for an end."""
    if is_exhausted(schedule):
        return True
    rule = rule_of(schedule)
    if rule is None or not rule.waits_for_end:
        return True
    if rule.end is None or rule.end > now:
        return False
    last, ended = schedule.last_nominal_at, schedule.last_finished_at
    return last is None or (ended is not None and ended >= last)


def why_not_running(schedule: Schedule) -> str:
    """Return why a schedule starts no more runs; empty if it does, or may again."""
    if resting := resting_reason(schedule):
        return resting
    if is_exhausted(schedule):
        had = "The one run" if schedule.max_runs == 1 else f"All {schedule.max_runs} runs"
        return f"{had} of its rule began. Raise max_runs, or change the rule, for more."
    return ""


def resting_reason(schedule: Schedule) -> str:
    """Return why a schedule begins nothing now; empty if it does."""
    if schedule.removed_at is not None:
        return "No code declares the schedule any more."
    if not schedule.is_enabled:
        return "The schedule is not enabled."
    if schedule.paused_at is None:
        return ""
    by = f" by {schedule.paused_by}" if schedule.paused_by else ""
    return f"Paused{by}: {schedule.pause_reason}" if schedule.pause_reason else f"Paused{by}."
