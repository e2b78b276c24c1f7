"""A task's life in the order in which it happened, and how long each part took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.display import moment, short_duration
from taskqueue.core.states import FINISHED, LeaseStatus, TaskStatus
from taskqueue.engine.lost import ENDED_BY_HAND
from taskqueue.models import Audit, Lease, Task

LONGEST_DETAIL = 300
ONE_TRANSACTION = timedelta(milliseconds=500)
ENDS: dict[str, Any] = {
    LeaseStatus.SUCCEEDED: gettext_lazy("Attempt %(number)s succeeded"),
    LeaseStatus.FAILED: gettext_lazy("Attempt %(number)s failed"),
    LeaseStatus.LOST: gettext_lazy("Attempt %(number)s was lost"),
    LeaseStatus.STOPPED: gettext_lazy("Attempt %(number)s was stopped"),
    LeaseStatus.RETURNED: gettext_lazy("Attempt %(number)s was returned"),
}
FINALES: dict[str, Any] = {
    TaskStatus.SUCCEEDED: gettext_lazy("Succeeded after a total of"),
    TaskStatus.FAILED: gettext_lazy("Failed after a total of"),
    TaskStatus.CANCELLED: gettext_lazy("Cancelled after a total of"),
}
ACTS: dict[str, Any] = {
    "retry": gettext_lazy("Retried manually"),
    "run_now": gettext_lazy("Run now"),
    "reschedule": gettext_lazy("Rescheduled"),
    "update": gettext_lazy("Changed"),
    "cancel": gettext_lazy("Cancelled manually"),
    "stop": gettext_lazy("Asked to stop"),
    "duplicate": gettext_lazy("Duplicated"),
    "enqueue": gettext_lazy("Enqueued manually"),
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that happened."""

    at: datetime
    kind: str
    """Its look: the status of what ended, `act`, `start`, `now`."""
    title: object
    seconds: float | None = None
    """How long that took which ended with it."""
    detail: str = ""
    who: str = ""

    @property
    def time(self) -> SafeString:
        """When."""
        return moment(self.at)

    @property
    def duration(self) -> str:
        """How long, for people."""
        return short_duration(self.seconds)


def steps(task: Task, leases: Sequence[Lease], audits: Sequence[Audit], now: Any) -> list[Step]:
    """All that is known, oldest first. Leases and audits stand in their order."""
    found = [Step(at=task.enqueued_at, kind="start", title=_("Enqueued"))]
    since = task.enqueued_at
    retried = [line.at for line in audits if line.verb == "retry" and not line.detail]
    for lease in leases:
        ready = max([since, *(at for at in retried if since <= at <= lease.claimed_at)])
        told = any(_tells_of_end(line, lease) for line in audits)
        found.extend(_attempt(lease, _seconds(ready, lease.claimed_at), tells_stop=not told))
        since = max(since, lease.finished_at or since)
    has_stops = any(lease.stop_requested_at for lease in leases)
    found.extend(_act(line, task) for line in audits if not (_is_first_stop(line) and has_stops))
    found.extend(_end(task, leases, since, now))
    return sorted(found, key=lambda step: (step.kind == "now", step.at))


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())


def _tells_of_end(line: Audit, lease: Lease) -> bool:
    """Whether the line is about the stop that ended this attempt of a lost worker."""
    at = lease.stop_requested_at
    is_same = at is not None and abs(line.at - at) < ONE_TRANSACTION
    is_end = line.verb in ("stop", "cancel") and lease.error_message == ENDED_BY_HAND
    return is_same and is_end and line.actor == lease.stop_requested_by and bool(line.detail)


def _attempt(lease: Lease, waited: float, *, tells_stop: bool) -> Iterator[Step]:
    begun = begun_at(lease)
    yield Step(
        at=begun, kind="start", seconds=waited, who=lease.worker_id,
        title=_("Attempt %(number)s started, after waiting") % {"number": lease.attempt},
    )  # fmt: skip
    if lease.stop_requested_at is not None and tells_stop:
        yield Step(
            at=lease.stop_requested_at, kind="act", title=_("Asked to stop"),
            who=lease.stop_requested_by, detail=lease.stop_reason,
        )  # fmt: skip
    if lease.stop_seen_at is not None:
        yield Step(at=lease.stop_seen_at, kind="act", title=_("The task received the stop request"))
    if lease.wedged_at is not None:
        yield Step(at=lease.wedged_at, kind="lost", title=_("Seems wedged: no sign of progress"))
    if lease.finished_at is not None:
        yield Step(
            at=lease.finished_at, kind=lease.status, seconds=_seconds(begun, lease.finished_at),
            title=ENDS.get(lease.status, ENDS[LeaseStatus.RETURNED]) % {"number": lease.attempt},
            detail=error_of(lease.error_class, lease.error_message),
        )  # fmt: skip


def begun_at(lease: Lease) -> datetime:
    """When its body began; what a worker measures may lie a little before its claim."""
    return max(lease.claimed_at, lease.started_at or lease.claimed_at)


def error_of(error_class: str, message: str) -> str:
    """An error in a line or two."""
    short = Truncator(message).chars(LONGEST_DETAIL)
    return ": ".join(filter(None, (error_class, short)))


def _is_first_stop(line: Audit) -> bool:
    """Whether the attempt itself tells of it."""
    return line.verb == "stop" and not line.detail


def _act(line: Audit, task: Task) -> Step:
    at, end = line.at, task.finished_at
    if end is not None and end < at < end + ONE_TRANSACTION:
        at = end  # The line is written after what it tells of.
    said = "; ".join(filter(None, (line.detail, line.reason)))
    return Step(
        at=at, kind="act", title=ACTS.get(line.verb, line.verb), who=line.actor,
        detail=Truncator(said).chars(LONGEST_DETAIL),
    )  # fmt: skip


def _end(task: Task, leases: Sequence[Lease], since: datetime, now: datetime) -> Iterator[Step]:
    """What it came to, or what it does at this moment."""
    if task.status in FINISHED and task.finished_at is not None:
        yield Step(
            at=task.finished_at, kind=task.status, title=FINALES[task.status],
            seconds=_seconds(task.enqueued_at, task.finished_at),
            detail=error_of(task.error_class, task.error_message) if _has_own_error(task, leases)
            else "",
        )  # fmt: skip
        return
    running = [lease for lease in leases if lease.status == LeaseStatus.RUNNING]
    if running:
        begun = min(map(begun_at, running))
        yield Step(at=now, kind="now", title=_("Running"), seconds=_seconds(begun, now))
    elif task.status == TaskStatus.RUNNING:
        yield Step(at=now, kind="now", title=_("Running"))
    else:
        yield Step(at=now, kind="now", title=_("Waiting"), seconds=_seconds(since, now))


def _has_own_error(task: Task, leases: Sequence[Lease]) -> bool:
    """Whether no attempt tells it already."""
    return not leases or leases[-1].error_message != task.error_message


# The bar: the same life as one strip, each part as long as it took.

WIDTH, HEIGHT, LEAST = 1000.0, 14, 4.0
MOST_ROWS = 20


@dataclass(frozen=True, kw_only=True)
class Part:
    """A stretch of time."""

    kind: str
    """`wait`, `idle` after an end, or the status of the attempt that it was."""
    start: datetime
    end: datetime
    row: int = 0

    @property
    def text(self) -> str:
        """What it was, and how long."""
        words = {"wait": _("waited"), "idle": _("finished")}
        word = words.get(self.kind, _("ran"))  # Not within the f-string: there nobody finds it.
        return f"{word} {short_duration(_seconds(self.start, self.end))}"


def parts(task: Task, leases: Sequence[Lease], audits: Sequence[Audit], now: Any) -> list[Part]:
    """The life of the task, cut where something began or ended."""
    end = task.finished_at or now
    if _is_shared(task):
        chosen = leases[-MOST_ROWS:]
        return [
            Part(kind=each.status, start=each.claimed_at, end=each.finished_at or end, row=row)
            for row, each in enumerate(chosen)
        ]
    found: list[Part] = []
    since = task.enqueued_at
    retried = [line.at for line in audits if line.verb == "retry" and not line.detail]
    for lease in leases:
        found.extend(_gap(since, lease.claimed_at, retried))
        until = lease.finished_at or end
        found.append(Part(kind=lease.status, start=lease.claimed_at, end=until))
        since = until
    found.extend(_gap(since, end, retried))
    return [part for part in found if part.end > part.start]


def _is_shared(task: Task) -> bool:
    return task.broadcast or task.workers > 1


def _gap(start: datetime, end: datetime, retried: Iterable[datetime]) -> Iterator[Part]:
    """Between two attempts: it waited, or it had ended until somebody retried it."""
    again = max((at for at in retried if start <= at <= end), default=None)
    if again is not None:
        yield Part(kind="idle", start=start, end=again)
        start = again
    yield Part(kind="wait", start=start, end=end)


def bar(found: Sequence[Part]) -> SafeString | str:
    """The parts as a drawing; empty where there are none."""
    if not found:
        return ""
    first, last = min(part.start for part in found), max(part.end for part in found)
    whole = max(_seconds(first, last), 1e-6)
    rows = 1 + max(part.row for part in found)
    drawn = SafeString("")
    for part in found:
        left = min(_seconds(first, part.start) / whole * WIDTH, WIDTH - LEAST)
        width = max(_seconds(part.start, part.end) / whole * WIDTH, LEAST)
        drawn += format_html(
            '<rect class="taskqueue-part taskqueue-part--{}" x="{}" y="{}" width="{}" height="{}">'
            "<title>{}</title></rect>",
            part.kind, f"{left:.1f}", part.row * (HEIGHT + 2), f"{min(width, WIDTH - left):.1f}",
            HEIGHT, part.text,
        )  # fmt: skip
    return format_html(
        '<svg class="taskqueue-bar" viewBox="0 0 {} {}" height="{}" preserveAspectRatio="none" '
        'role="img" aria-label="{}">{}</svg>',
        int(WIDTH), rows * (HEIGHT + 2) - 2, rows * (HEIGHT + 2) - 2,
        ", ".join(part.text for part in found[-MOST_ROWS:]), drawn,
    )  # fmt: skip
