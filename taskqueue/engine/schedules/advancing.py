"""Advancing one schedule: every nominal time that has come gets its occurrence, once."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import islice

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue import rules
from taskqueue.core.policies import Overlap
from taskqueue.engine.schedules.deciding import Decision, decide
from taskqueue.engine.schedules.runs import Runs, resting_reason
from taskqueue.engine.schedules.settling import settle_ended
from taskqueue.models import Occurrence, Schedule
from taskqueue.models.occurrence import OccurrenceStatus
from taskqueue.rules import Rule

# The beginning of trouble that is over with the next time that is served.
NOT_SERVED = "Not served: "
MOVED = (
    "served_until", "next_at", "failures_in_row", "trouble", "last_nominal_at", "last_task",
    "paused_at", "paused_by", "pause_reason",
)  # fmt: skip
# The columns that are written only when a run has ended: a result may be large.
RESULT = ("last_status", "last_finished_at", "last_return_value", "last_error")
# Nominal times that are served in one transaction, and how many of them may run.
#
# Where more have come, others follow.
BATCH, MOST_RUNS = 500, 50
# Transactions' worth of nominal times that are served at once: whoever asked is waiting.
MOST_BATCHES = 20

logger = logging.getLogger("taskqueue")


def advance(connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime) -> None:
    """Note what has ended, begin what waited for that, serve what has come; and save the row.

    The caller has locked the row, and holds the transaction. Where more nominal times have come
    than one transaction serves, `next_at` says so: it is not later than `now`. Raises
    `InvalidSchedule` if this version cannot read the rule or the request.
    """
    rule = rules.from_json(schedule.rule)
    ended_at = settle_ended(connection, schedule, now)
    runs = Runs(connection, schedule, now)
    runs.go_on()
    if schedule.is_active:
        if rule.waits_for_end:
            _serve_after_end(connection, schedule, rule, runs, now=now, ended_at=ended_at)
        else:
            _serve_times(connection, schedule, rule, runs, now=now)
        if schedule.trouble.startswith(NOT_SERVED):
            schedule.trouble = ""
    save(connection, schedule, RESULT if ended_at is not None else ())


def save(
    connection: BaseDatabaseWrapper, schedule: Schedule, further: Collection[str] = ()
) -> None:
    """Write what advancing a schedule changes, and nothing of what others write."""
    schedule.save(using=connection.alias, update_fields=[*MOVED, *further])


def begin_from(
    connection: BaseDatabaseWrapper, schedule: Schedule, rule: Rule, now: datetime
) -> None:
    """Let the schedule count from `now` on: what the rule had before that is not made up for."""
    schedule.served_until = now
    if not rule.waits_for_end:
        schedule.next_at = rule.after(now)
        return
    if schedule.pk is not None and Runs(connection, schedule, now).has_open:
        schedule.next_at = None
        return
    last = schedule.last_finished_at
    first = rule.start or now if last is None else rule.after(last)
    schedule.next_at = None if first is None else _within(rule, max(first, now))


def _serve_times(
    connection: BaseDatabaseWrapper, schedule: Schedule, rule: Rule, runs: Runs, *, now: datetime
) -> None:
    due = list(islice(rule.between(schedule.served_until, now), BATCH + 1))
    size = min(BATCH, _runs_end(schedule, due[:BATCH], now))
    has_more = len(due) > size
    due = due[:size]
    if due:
        decisions = _decide(schedule, due, now=now, has_more=has_more)
        if schedule.overlap == Overlap.CANCEL:
            decisions = _only_the_last(decisions)
        _carry_out(connection, schedule, runs, decisions, now=now, in_bulk=has_more)
        schedule.served_until = due[-1]
    schedule.next_at = rule.after(schedule.served_until)


def _only_the_last(decisions: Sequence[Decision]) -> list[Decision]:
    """Where each run cancels the one before, only the last of those that come together begins."""
    last = max((decision.nominal_at for decision in decisions if not decision.reason), default=None)
    return [
        decision
        if decision.reason or decision.nominal_at == last or last is None
        else decision._replace(reason=f"The run of {last.isoformat()} has come.")
        for decision in decisions
    ]


def _runs_end(schedule: Schedule, due: Sequence[datetime], now: datetime) -> int:
    """After how many of these times so many run that they are enough for one transaction."""
    if schedule.overlap not in (Overlap.ALLOW, Overlap.QUEUE_ALL):
        return len(due) + 1  # One or two of them run, whatever else is to.
    runs = 0
    for place, decision in enumerate(_decide(schedule, due, now=now, has_more=True), start=1):
        runs += not decision.reason
        if runs == MOST_RUNS:
            return place
    return len(due) + 1


def _serve_after_end(
    connection: BaseDatabaseWrapper,
    schedule: Schedule,
    rule: Rule,
    runs: Runs,
    *,
    now: datetime,
    ended_at: datetime | None,
) -> None:
    """There is one nominal time at most: so long after the last end."""
    if runs.has_open:
        schedule.next_at = None
        return
    if ended_at is not None:
        schedule.next_at = rule.after(ended_at)
    nominal_at = schedule.next_at
    if nominal_at is None or nominal_at > now:
        return
    decisions = _decide(schedule, [nominal_at], now=now, has_more=False)
    _carry_out(connection, schedule, runs, decisions, now=now, in_bulk=False)
    schedule.served_until = max(schedule.served_until, nominal_at)
    # One that did not run has no end to count from.
    schedule.next_at = None if runs.has_open else rule.after(now)


def _decide(
    schedule: Schedule, due: Sequence[datetime], *, now: datetime, has_more: bool
) -> list[Decision]:
    if reason := resting_reason(schedule):
        return [Decision(nominal_at, reason) for nominal_at in due]
    return decide(
        due,
        missed=schedule.missed,
        window=schedule.missed_window,
        now=now,
        has_more=has_more,
    )


def _carry_out(
    connection: BaseDatabaseWrapper,
    schedule: Schedule,
    runs: Runs,
    decisions: Sequence[Decision],
    *,
    now: datetime,
    in_bulk: bool,
) -> None:
    occurrences = Occurrence.objects.using(connection.alias)
    # None exists, unless the row was brought back from an older copy of the database.
    known = frozenset(
        occurrences.filter(
            schedule_id=schedule.id, nominal_at__in=[decision.nominal_at for decision in decisions]
        ).values_list("nominal_at", flat=True)
    )
    skipped: list[Occurrence] = []
    for decision in decisions:
        if decision.nominal_at in known:
            continue
        # An overlap is decided before anything is written, so that many can be kept as one.
        reason = decision.reason or runs.refusal()
        if reason:
            skipped.append(
                Occurrence(
                    schedule_id=schedule.id,
                    nominal_at=decision.nominal_at,
                    status=OccurrenceStatus.SKIPPED,
                    reason=reason[:1000],
                    created_at=now,
                )
            )
        else:
            runs.accept(decision.nominal_at)
    occurrences.bulk_create(_merged(skipped) if in_bulk else skipped)


def _merged(skipped: Iterable[Occurrence]) -> list[Occurrence]:
    """One row for neighbours that were skipped for the same reason."""
    merged: list[Occurrence] = []
    for row in skipped:
        last = merged[-1] if merged else None
        if last is not None and last.reason == row.reason:
            last.nominal_until = row.nominal_at
            last.count += 1
        else:
            merged.append(row)
    return merged


def _within(rule: Rule, moment: datetime) -> datetime | None:
    return None if rule.end is not None and moment > rule.end else moment


def catch_up(
    connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime, written_off: str = ""
) -> None:
    """Serve a locked schedule as it stands, up to now, in the caller's transaction.

    After a long outage that may be too much to wait for: with a reason in `written_off` the rest
    is recorded as skipped for it, in one row; without one it is left for the workers. Changes
    nothing of a schedule that this version cannot serve.
    """
    if not schedule.is_active:
        return
    for _ in range(MOST_BATCHES):
        try:
            with atomic(using=connection.alias):
                advance(connection, schedule, now)
        except (DatabaseError, InterfaceError):
            raise
        except Exception:  # Whatever is odd about it may be why it is changed.
            logger.exception("Schedule not served schedule=%s", schedule.name)
            schedule.refresh_from_db(using=connection.alias)
            return
        if schedule.next_at is None or schedule.next_at > now:
            return
    if written_off:
        _write_off(connection, schedule, now, written_off)


def _write_off(
    connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime, reason: str
) -> None:
    rule = rules.from_json(schedule.rule)
    count, first = 0, None
    last: deque[datetime] = deque(maxlen=1)
    for nominal_at in rule.between(schedule.served_until, now):
        first = first or nominal_at
        count += 1
        last.append(nominal_at)
    if first is None:
        return
    Occurrence.objects.using(connection.alias).create(
        schedule_id=schedule.id,
        nominal_at=first,
        nominal_until=last[0] if count > 1 else None,
        count=count,
        status=OccurrenceStatus.SKIPPED,
        reason=reason[:1000],
        created_at=now,
    )
    schedule.served_until = last[0]
    schedule.next_at = rule.after(last[0])
    save(connection, schedule)
