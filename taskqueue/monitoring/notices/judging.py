"""All notices, judged from one reading, for all interfaces, the doctor and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from taskqueue.access.permissions import (
    EDIT_SCHEDULES,
    VIEW_ALERT_RULES,
    VIEW_LIMITS,
    VIEW_SCHEDULES,
    VIEW_WORKERS,
)
from taskqueue.monitoring.check_permissions import OF_CHECKS
from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.notices.doctor import of_doctor
from taskqueue.monitoring.notices.failures import failure_jumps, new_errors
from taskqueue.monitoring.notices.out_of_reach import absent_tags, out_of_reach, parked
from taskqueue.monitoring.notices.queues import growing, of_queues
from taskqueue.monitoring.notices.schedules import overdue_schedules, resting_schedules
from taskqueue.monitoring.notices.sequences import halted_sequences
from taskqueue.monitoring.notices.situation import Situation
from taskqueue.monitoring.notices.workers import held_by_lost, long_runs, of_workers, wedged
from taskqueue.monitoring.read_models.base import Viewer

# Codes that come before others of their level.
FOREMOST = frozenset({"all_paused", "no_worker", "lost_holds", "lost_worker"})


def notices(situation: Situation | None = None) -> list[Notice]:
    """Return the notices, errors first; within a level, those about lost workers first.

    Parts of the situation that have been read are not read again.
    """
    seen = Situation() if situation is None else situation
    found = (_dated(notice, seen) for judge in JUDGES for notice in judge(seen))
    return sorted(found, key=lambda notice: (notice.level != ERROR, notice.code not in FOREMOST))


# Any one of these permissions allows viewing the notices of a code; other codes require the
# permission to view tasks.
NEEDED: dict[frozenset[str], tuple[str, ...]] = {
    frozenset({"lost_worker", "worker_trouble"}): (VIEW_WORKERS,),
    frozenset({"doctor"}): (VIEW_WORKERS,),
    frozenset({"halted"}): (VIEW_LIMITS,),
    frozenset({"heartbeat_failing"}): (VIEW_ALERT_RULES,),
    frozenset({"schedule_trouble", "schedule_paused_itself", "schedule_overdue"}): (
        VIEW_SCHEDULES,
        EDIT_SCHEDULES,
    ),
}


def visible_to(viewer: Viewer, found: Iterable[Notice]) -> list[Notice]:
    """Return the notices that a person who may view tasks may see."""
    hidden: set[str] = set()
    for codes, permissions in NEEDED.items():
        if not any(map(viewer.has_perm, permissions)):
            hidden |= codes
    checks = {check for check, needed in OF_CHECKS.items() if not viewer.has_perm(needed)}
    return [
        notice
        for notice in found
        if notice.code not in hidden
        and not (notice.code == "doctor" and notice.subject.partition(":")[0] in checks)
    ]


def _dated(notice: Notice, situation: Situation) -> Notice:
    """Return the notice with the time since when it holds, if its duration is known."""
    if notice.since is not None or notice.seconds is None:
        return notice
    return replace(notice, since=situation.ago(notice.seconds))


def of_pauses(situation: Situation) -> Iterator[Notice]:
    """Yield that everything is paused, and which definitions are."""
    for pause in situation.standing.pauses:
        until = f"→ {pause.until:%Y-%m-%d %H:%M} UTC" if pause.until else ""
        said = ", ".join(filter(None, (pause.by, until, pause.reason)))
        detail = f" ({said})" if said else ""
        if pause.name:
            yield Notice("definition_paused", WARNING, pause.name, detail=detail, since=pause.since)
        else:
            yield Notice("all_paused", ERROR, detail=detail, since=pause.since)


def of_heartbeats(situation: Situation) -> Iterator[Notice]:
    """Yield the heartbeats that cannot be called.

    As warnings, because an error would stop them from calling forever.
    """
    for each in situation.standing.heartbeats:
        detail = each.failure
        yield Notice("heartbeat_failing", WARNING, each.rule, detail=detail, since=each.since)


Judge = Callable[[Situation], Iterable[Notice]]
JUDGES: tuple[Judge, ...] = (
    of_pauses, of_queues, growing, out_of_reach, absent_tags, parked, failure_jumps, new_errors,
    resting_schedules, overdue_schedules, of_workers, held_by_lost, wedged, long_runs,
    halted_sequences, of_doctor, of_heartbeats,
)  # fmt: skip
