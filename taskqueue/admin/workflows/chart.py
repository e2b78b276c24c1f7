"""When the attempts of a workflow ran: bars by step, on one time scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from taskqueue.core.workflow_states import StepKind
from taskqueue.display import WORDS
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease, Member, Step, Workflow
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.history import seconds_between

# The most steps with a row, and the most attempts that are read, shared equally by these.
MOST_ROWS, MOST_ATTEMPTS = 60, 600
# The most simultaneous attempts with separate lanes; further ones share the last lane.
MOST_LANES = 12
WIDTH, LEAST, LANE = 1000.0, 3.0, 12
# The number of equal parts of the axis.
PARTS = 4


@dataclass(frozen=True)
class Bar:
    """An attempt, as a rectangle; or the time from the release of a step to its end."""

    status: str
    left: str
    top: int
    width: str
    words: str


@dataclass(frozen=True)
class Row:
    """The attempts of a step, in as many lanes as ran at the same time."""

    step: str
    height: int
    span: Bar
    bars: list[Bar]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """The attempts of a workflow."""

    rows: list[Row]
    start: datetime
    end: datetime
    # The number of steps that have begun, and whether some of their attempts are left out.
    steps: int
    is_cut: bool
    # The statuses of attempts that are shown.
    statuses: list[str]

    @property
    def seconds(self) -> float:
        """The time that it spans."""
        return seconds_between(self.start, self.end)

    @property
    def labels(self) -> list[str]:
        """Return the texts of the axis: times since the start."""
        return ["0", *(short_duration(self.seconds * n / PARTS) for n in range(1, PARTS + 1))]


def chart_of(workflow: Workflow, now: datetime) -> Chart | None:
    """Lay out the steps released first, with their attempts; None if none was released."""
    released = (
        Step.objects.using(database_alias())
        .filter(workflow_id=workflow.pk, released_at__isnull=False)
        .exclude(kind=StepKind.JOIN)
    )
    first = list(
        released.only("id", "name", "status", "members", "released_at", "finished_at").order_by(
            "released_at", "id"
        )[:MOST_ROWS]
    )
    if not first:
        return None
    share = max(MOST_ATTEMPTS // len(first), 1)
    leases = _attempts(first, share)
    starts = [
        *(moment for step in first if (moment := step.released_at) is not None),
        *(_begun(lease) for each in leases.values() for lease in each),
    ]
    ends = [
        *(_step_end(step, now) for step in first),
        *(_ended(lease, now) for each in leases.values() for lease in each),
    ]
    scale = _Scale(min(starts), max(ends))
    found = {lease.status for each in leases.values() for lease in each}
    return Chart(
        rows=[_row(step, leases.get(step.pk, ()), scale, now) for step in first],
        start=scale.start,
        end=scale.end,
        steps=released.count() if len(first) == MOST_ROWS else len(first),
        is_cut=any((step.members or 0) > share for step in first),
        statuses=[status for status in WORDS if status in found],
    )


def _attempts(steps: Sequence[Step], share: int) -> dict[int, list[Any]]:
    """Return attempts of each step by key; of many members, some at equal distances."""
    narrow = [step.pk for step in steps if (step.members or 0) <= share]
    chosen = Q(step_id__in=narrow, place__gte=0)
    for step in steps:
        if (members := step.members or 0) > share:
            places = [members * number // share for number in range(share)]
            chosen |= Q(step_id=step.pk, place__in=places)
    members_of_steps = Member.objects.using(database_alias()).filter(chosen)
    by_task = dict(members_of_steps.values_list("task_id", "step_id")[:MOST_ATTEMPTS])
    leases = Lease.objects.using(database_alias()).filter(task_id__in=list(by_task))
    # First attempts before retries, because those of one task must not displace other tasks.
    rows = leases.only(
        "task_id", "attempt", "worker_id", "status", "claimed_at", "started_at", "finished_at"
    ).order_by("attempt", "id")[:MOST_ATTEMPTS]
    found: dict[int, list[Any]] = {}
    for lease in rows:
        found.setdefault(by_task[lease.task_id], []).append(lease)
    return {step: sorted(each, key=_begun) for step, each in found.items()}


def _begun(lease: Any) -> datetime:
    moment: datetime = lease.started_at or lease.claimed_at
    return moment


def _ended(lease: Any, now: datetime) -> datetime:
    # Clocks of workers may be ahead of the database's.
    return max(lease.finished_at or now, _begun(lease))


def _step_end(step: Step, now: datetime) -> datetime:
    return max(step.finished_at or now, step.released_at or now)


@dataclass(frozen=True)
class _Scale:
    """The whole time span, as the width of a drawing."""

    start: datetime
    end: datetime

    def place(self, begun: datetime, ended: datetime) -> tuple[str, str]:
        """Return the position and the width of the time between two moments."""
        whole = max(seconds_between(self.start, self.end), 1e-6)
        left = min(seconds_between(self.start, begun) / whole * WIDTH, WIDTH - LEAST)
        width = min(max(seconds_between(begun, ended) / whole * WIDTH, LEAST), WIDTH - left)
        return f"{left:.1f}", f"{width:.1f}"


def _row(step: Step, leases: Iterable[Any], scale: _Scale, now: datetime) -> Row:
    free: list[datetime] = []
    bars = []
    for lease in leases:
        begun, ended = _begun(lease), _ended(lease, now)
        lane = next((lane for lane, moment in enumerate(free) if moment <= begun), len(free))
        lane = min(lane, MOST_LANES - 1)
        free[lane : lane + 1] = [ended]
        left, width = scale.place(begun, ended)
        words = _("attempt %(number)s on %(worker)s: %(status)s, %(time)s") % {
            "number": lease.attempt,
            "worker": lease.worker_id,
            "status": WORDS.get(lease.status, lease.status),
            "time": short_duration(seconds_between(begun, ended)),
        }
        bars.append(Bar(lease.status, left, lane * LANE, width, words))
    released = step.released_at or now
    left, width = scale.place(released, _step_end(step, now))
    words = _("%(step)s: %(status)s, %(time)s") % {
        "step": step.name,
        "status": WORDS[step.status],
        "time": short_duration(seconds_between(released, _step_end(step, now))),
    }
    return Row(step.name, max(len(free), 1) * LANE, Bar(step.status, left, 0, width, words), bars)
