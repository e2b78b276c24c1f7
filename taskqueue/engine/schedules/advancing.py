"""Advance one schedule: every nominal time that has passed gets one occurrence."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

from taskqueue import rules
from taskqueue.core.states import Missed, Overlap
from taskqueue.engine.schedules.ends import settle_ended
from taskqueue.engine.schedules.reading import resting_reason
from taskqueue.engine.schedules.runs import LONGEST_REASON, Runs, skipped_row
from taskqueue.engine.schedules.times import (
    Time,
    is_exhausted,
    next_start,
    start_after,
    times_from,
)
from taskqueue.models import Occurrence, Schedule
from taskqueue.models.schedule import OccurrenceStatus
from taskqueue.rules import Rule

# A nominal time counts as missed if it is served later than this, or after the next one has come.
ON_TIME = timedelta(seconds=60)
# The prefix of a trouble that is cleared when the schedule is next served.
NOT_SERVED = "Not served: "
MOVED = (
    "served_until", "next_at", "run_count", "failures_in_row", "trouble", "last_nominal_at",
    "last_task", "last_workflow", "paused_at", "paused_by", "pause_reason",
)  # fmt: skip
# Columns that are written only when a run has ended, because a result may be large.
RESULT = ("last_status", "last_finished_at", "last_return_value", "last_error")
# The most nominal times that one transaction serves, and the most of them that may run.
#
# If more have come, further transactions follow. A workflow may have thousands of rows.
BATCH, MOST_RUNS, MOST_WORKFLOWS = 500, 50, 5
# The most transactions of nominal times that are served at once while a caller waits.
MOST_BATCHES = 20

logger = logging.getLogger("taskqueue")


def advance(connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime) -> None:
    """Record ended runs, begin runs that waited for them, serve due times, and save the row.

    The caller has locked the row in its transaction. If more nominal times have come than one
    transaction serves, `next_at` shows it by not being later than `now`. Raises `InvalidSchedule`
    if this version cannot read the rule or the request.
    """
    rule = rules.from_json(schedule.rule)
    ended_at = settle_ended(connection, schedule, now)
    runs = Runs(connection, schedule, now)
    runs.go_on()
    if schedule.is_active:
        if rule.waits_for_end:
            _serve_after_end(runs, rule, ended_at)
        else:
            _serve_times(runs, rule)
        if schedule.trouble.startswith(NOT_SERVED):
            schedule.trouble = ""
    save(connection, schedule, RESULT if ended_at is not None else ())


def save(
    connection: BaseDatabaseWrapper, schedule: Schedule, further: Collection[str] = ()
) -> None:
    """Write the columns that advancing changes, and no others."""
    schedule.save(using=connection.alias, update_fields=[*MOVED, *further])


def begin_from(connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime) -> None:
    """Let the schedule count from `now` on: earlier times of the rule are not made up for."""
    rule = rules.from_json(schedule.rule)
    schedule.served_until = now
    if not rule.waits_for_end:
        schedule.next_at = next_start(schedule, rule)
    elif is_exhausted(schedule) or (
        schedule.pk is not None and Runs(connection, schedule, now).has_open
    ):
        schedule.next_at = None
    else:
        last = schedule.last_finished_at
        first = rule.start or now if last is None else start_after(schedule, rule, last)
        begin = None if first is None else max(first, now)
        is_over = begin is not None and rule.end is not None and begin > rule.end
        schedule.next_at = None if is_over else begin


def move_next(schedule: Schedule) -> None:
    """Compute its next time anew, after a change of jitter or number of runs. No time is lost."""
    rule = rules.from_json(schedule.rule)
    if is_exhausted(schedule):
        schedule.next_at = None
    elif not rule.waits_for_end:
        schedule.next_at = next_start(schedule, rule)


def _serve_times(runs: Runs, rule: Rule) -> None:
    schedule, now = runs.schedule, runs.now
    if is_exhausted(schedule):
        schedule.next_at = None
        return
    has_come = takewhile(lambda time: time.starts_at <= now, times_from(schedule, rule))
    due = list(islice(has_come, BATCH + 1))
    size = _size(schedule, due[:BATCH], now)
    has_more = len(due) > size
    due = due[:size]
    if due:
        reasons = decide(schedule, due, now, has_more=has_more)
        if schedule.overlap == Overlap.CANCEL:
            # Each run cancels the one before: of those that come together, only the last one
            # begins.
            running = [nominal_at for nominal_at, reason in reasons.items() if not reason]
            reasons |= {
                nominal_at: f"The run of {running[-1].isoformat()} has come."
                for nominal_at in running[:-1]
            }
        _carry_out(runs, reasons, in_bulk=has_more or rule.is_fine, joins_last=rule.is_fine)
        schedule.served_until = due[-1].nominal_at
    schedule.next_at = next_start(schedule, rule)


def _size(schedule: Schedule, due: Sequence[Time], now: datetime) -> int:
    """Return how many of these times one transaction serves, so that not too many of them run."""
    if schedule.overlap in (Overlap.ALLOW, Overlap.QUEUE_ALL):
        reasons = decide(schedule, due, now, has_more=True).values()
        running = [place for place, reason in enumerate(reasons, start=1) if not reason]
        most = MOST_WORKFLOWS if schedule.is_workflow else MOST_RUNS
        if len(running) >= most:
            return running[most - 1]
    return BATCH  # With the other policies, only one or two of them run.


def decide(
    schedule: Schedule, due: Sequence[Time], now: datetime, *, has_more: bool = False
) -> dict[datetime, str]:
    """Return for each of these ordered nominal times why it does not run; empty if it runs.

    `has_more`: later nominal times have come too.
    """
    if resting := resting_reason(schedule):
        return {time.nominal_at: resting for time in due}
    reasons = {time.nominal_at: _missed_reason(schedule, now - time.starts_at) for time in due}
    is_last = bool(due) and not has_more
    if is_last and (now - due[-1].starts_at <= ON_TIME or schedule.missed == Missed.LATEST):
        reasons[due[-1].nominal_at] = ""
    return reasons


def _missed_reason(schedule: Schedule, late: timedelta) -> str:
    """Return why a missed time that is not the latest does not run; empty if it runs."""
    window = schedule.missed_window
    if schedule.missed == Missed.ALL:
        return ""
    if schedule.missed == Missed.LATEST:
        return "Missed; the latest one makes up for it."
    if schedule.missed == Missed.WINDOW and window is not None:
        return "" if late <= window else f"Missed by more than {window.total_seconds():g} s."
    return "Missed: nobody served the schedule in time."


def _serve_after_end(runs: Runs, rule: Rule, ended_at: datetime | None) -> None:
    """Serve the only possible nominal time: the one that follows the last end."""
    schedule, now = runs.schedule, runs.now
    if runs.has_open:
        schedule.next_at = None
        return
    if ended_at is not None:
        schedule.next_at = start_after(schedule, rule, ended_at)
    nominal_at = schedule.next_at
    if nominal_at is None or nominal_at > now:
        return
    _carry_out(runs, decide(schedule, [Time(nominal_at, nominal_at)], now), in_bulk=False)
    schedule.served_until = max(schedule.served_until, nominal_at)
    # A time that did not run has no end to count from.
    schedule.next_at = None if runs.has_open else start_after(schedule, rule, now)


def _carry_out(
    runs: Runs, reasons: Mapping[datetime, str], *, in_bulk: bool, joins_last: bool = False
) -> None:
    """Begin the runs, and record times with a reason as skipped.

    In bulk, equal neighbours become one row. With `joins_last`, the first skipped times are added
    to the last row if that was skipped for the same reason: a rule with twenty times a second must
    not write as many rows.

    Overlaps are decided before anything is written, so that many skipped times can become one row.
    """
    occurrences = Occurrence.objects.using(runs.connection.alias)
    # There are none, unless the schedule's row was restored from an older copy of the database.
    known = occurrences.filter(schedule_id=runs.schedule.id, nominal_at__in=list(reasons))
    known_times = frozenset(known.values_list("nominal_at", flat=True))
    skipped: list[Occurrence] = []
    last = _last_skipped(runs, occurrences) if joins_last else None
    joined = 0
    for nominal_at, decided in reasons.items():
        if is_exhausted(runs.schedule):
            break  # The rule has had all its runs, so later times are none of its times.
        if nominal_at in known_times:
            continue
        reason = decided or runs.refusal()
        if not reason:
            runs.accept(nominal_at)
            joins_last = False
        elif in_bulk and skipped and skipped[-1].reason == reason[:LONGEST_REASON]:
            skipped[-1].nominal_until = nominal_at
            skipped[-1].count += 1
        elif joins_last and last is not None and last.reason == reason[:LONGEST_REASON]:
            last.nominal_until = nominal_at
            joined += 1
        else:
            skipped.append(skipped_row(runs.schedule, nominal_at, reason, runs.now))
            joins_last = False
    if last is not None and joined:
        count = last.count + joined
        occurrences.filter(id=last.id).update(nominal_until=last.nominal_until, count=count)
    occurrences.bulk_create(skipped)


def _last_skipped(runs: Runs, occurrences: QuerySet[Occurrence]) -> Occurrence | None:
    """Return the row of the latest time if it was skipped."""
    last = occurrences.filter(schedule_id=runs.schedule.id).order_by("-nominal_at").first()
    return last if last is not None and last.status == OccurrenceStatus.SKIPPED else None


def catch_up(
    connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime, written_off: str = ""
) -> None:
    """Serve a locked schedule up to now, in the caller's transaction.

    After a long outage there may be too much to wait for. With a reason in `written_off`, the rest
    is then recorded as skipped, in one row; without one it is left to the workers. A schedule that
    this version cannot serve is not changed.
    """
    if not schedule.is_active:
        return
    for _ in range(MOST_BATCHES):
        try:
            with atomic(using=connection.alias):
                advance(connection, schedule, now)
        except (DatabaseError, InterfaceError):
            raise
        except Exception:  # The schedule may be changed just because something is wrong with it.
            logger.exception("Schedule not served schedule=%s", schedule.name)
            schedule.refresh_from_db(using=connection.alias)
            return
        if schedule.next_at is None or schedule.next_at > now:
            return
    if written_off:
        rule = rules.from_json(schedule.rule)
        times = takewhile(lambda time: time.starts_at <= now, times_from(schedule, rule))
        row = skipped_row(schedule, next(times).nominal_at, written_off, now)
        for time in times:
            row.nominal_until = time.nominal_at
            row.count += 1
        row.save(using=connection.alias)
        schedule.served_until = row.nominal_until or row.nominal_at
        schedule.next_at = next_start(schedule, rule)
        save(connection, schedule)
