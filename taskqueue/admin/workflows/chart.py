"""When the attempts of a workflow ran: bars on one scale of time, by step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from taskqueue.display import WORDS, short_duration
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease, Member, Workflow
from taskqueue.monitoring.history import seconds_between

# Attempts that are read, the first of the workflow; steps that have a row.
MOST_ATTEMPTS, MOST_ROWS = 500, 60
WIDTH, LEAST, LANE = 1000.0, 3.0, 12


@dataclass(frozen=True)
class Bar:
    """An attempt, as a rectangle."""

    status: str
    left: str
    top: int
    width: str
    words: str


@dataclass(frozen=True)
class Row:
    """The attempts of a step, in as many lanes as ran at once."""

    step: str
    height: int
    bars: list[Bar]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """The attempts of a workflow."""

    rows: list[Row]
    start: datetime
    end: datetime
    # Whether there are more attempts, or more steps, than are shown.
    is_cut: bool

    @property
    def seconds(self) -> float:
        """The time that it spans."""
        return seconds_between(self.start, self.end)


def chart_of(workflow: Workflow, now: datetime) -> Chart | None:
    """Lay out the first attempts of a workflow's own tasks; None if there were none."""
    attempts = _attempts(workflow.pk)
    if not attempts:
        return None
    is_cut = len(attempts) > MOST_ATTEMPTS
    attempts = attempts[:MOST_ATTEMPTS]
    start = min(_begun(lease) for _step, lease in attempts)
    end = max(_ended(lease, now) for _step, lease in attempts)
    by_step: dict[str, list[Any]] = {}
    for step, lease in attempts:
        by_step.setdefault(step, []).append(lease)
    rows = [_row(step, leases, start, end, now) for step, leases in by_step.items()]
    is_cut = is_cut or len(rows) > MOST_ROWS
    return Chart(rows=rows[:MOST_ROWS], start=start, end=end, is_cut=is_cut)


def _attempts(workflow_id: UUID) -> list[tuple[str, Any]]:
    """Return the first attempts with the names of their steps, in the order in which they began."""
    members = Member.objects.using(database_alias()).filter(step__workflow_id=workflow_id)
    first = members.order_by("step_id", "place").values_list("task_id", "step__name")
    steps = dict(first[: MOST_ATTEMPTS + 1])
    leases = Lease.objects.using(database_alias()).filter(task_id__in=list(steps))
    rows = leases.only(
        "task_id", "attempt", "worker_id", "status", "claimed_at", "started_at", "finished_at"
    ).order_by("id")[: MOST_ATTEMPTS + 1]
    return [(steps[lease.task_id], lease) for lease in rows]


def _begun(lease: Any) -> datetime:
    moment: datetime = lease.started_at or lease.claimed_at
    return moment


def _ended(lease: Any, now: datetime) -> datetime:
    # The clocks of workers may be ahead of the database's.
    return max(lease.finished_at or now, _begun(lease))


def _row(step: str, leases: Iterable[Any], start: datetime, end: datetime, now: datetime) -> Row:
    whole = max(seconds_between(start, end), 1e-6)
    free: list[datetime] = []
    bars = []
    for lease in sorted(leases, key=_begun):
        begun, ended = _begun(lease), _ended(lease, now)
        lane = next((lane for lane, moment in enumerate(free) if moment <= begun), len(free))
        free[lane : lane + 1] = [ended]
        left = min(seconds_between(start, begun) / whole * WIDTH, WIDTH - LEAST)
        width = min(max(seconds_between(begun, ended) / whole * WIDTH, LEAST), WIDTH - left)
        words = _("attempt %(number)s on %(worker)s: %(status)s, %(time)s") % {
            "number": lease.attempt,
            "worker": lease.worker_id,
            "status": WORDS.get(lease.status, lease.status),
            "time": short_duration(seconds_between(begun, ended)),
        }
        bars.append(Bar(lease.status, f"{left:.1f}", lane * LANE, f"{width:.1f}", words))
    return Row(step, len(free) * LANE, bars)
