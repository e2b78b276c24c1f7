"""One frame of `top`: an overview as lines for the size of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskqueue.management.cli.output import short, size, without_controls
from taskqueue.management.cli.top.cells import aligned, bars, fitted_line
from taskqueue.monitoring.notices import ERROR, Notice
from taskqueue.monitoring.overview import Overview
from taskqueue.monitoring.read_models.queue import ShownQueue
from taskqueue.monitoring.read_models.running_task import RunningTask
from taskqueue.monitoring.read_models.worker import LIVING, LOST, ShownWorker

QUEUE = ("queue", "waiting", "oldest", "running", "last hour", "")
WORKER = ("worker", "host", "pid", "state", "busy", "memory", "seen", "")
RUNNING = ("running", "queue", "worker", "try", "for", "done", "")
MINUTES = 30
"""Minutes in the row of bars."""
NEWS = 3600.0
"""Seconds for which a lost worker is shown."""
MOST_NOTICES = 3
BAR = 10


@dataclass(frozen=True)
class Line:
    """A line of a frame."""

    text: str
    is_heading: bool = False


def frame(
    overview: Overview, *, columns: int, rows: int | None = None, title: str = ""
) -> list[Line]:
    """Return at most `rows` lines; all without a limit."""
    top = _top(overview, columns, title)
    sections = [
        _section(QUEUE, _queues(overview)),
        _section(WORKER, _workers(overview)),
        _section(RUNNING, _running(overview)),
    ]
    if rows is not None:
        # Each section has a blank line before it and its heading; one without a row tells nothing.
        sections = sections[: max(0, (rows - len(top)) // 3)]
        free = rows - len(top) - 2 * len(sections)
        shares = shared([len(section) - 1 for section in sections], free)
        sections = [_cut(section, share) for section, share in zip(sections, shares, strict=True)]
    lines = list(top)
    for section in sections:
        heading, *rest = aligned(section, columns=columns)
        lines += [Line(""), Line(heading, is_heading=True), *map(Line, rest)]
    return lines if rows is None else lines[: max(1, rows)]


def shared(wanted: Sequence[int], free: int) -> list[int]:
    """Share the free rows among sections: rows that one does not need go to the others."""
    shares = [0] * len(wanted)
    while free > 0 and any(has < wants for has, wants in zip(shares, wanted, strict=True)):
        for place, wants in enumerate(wanted):
            if free > 0 and shares[place] < wants:
                shares[place] += 1
                free -= 1
    return shares


Section = list[tuple[str, ...]]


def _section(heading: tuple[str, ...], rows: Section) -> Section:
    return [heading, *(rows or [("none", *[""] * (len(heading) - 1))])]


def _cut(section: Section, share: int) -> Section:
    """Cut the rows below the heading; the last says how many more there are."""
    if len(section) - 1 <= share:
        return section
    left = len(section) - share
    return [*section[:share], (f"… {left} more", *[""] * (len(section[0]) - 1))]


def _top(overview: Overview, columns: int, title: str) -> list[Line]:
    counts = "  ".join(f"{status} {count}" for status, count in overview.counts.items())
    hour, last = overview.hour, overview.last_minute
    speed = (
        f"{last.ended:,} a minute, {last.failed + last.lost:,} failed"
        f" (this one: {overview.this_minute.ended:,})"
    )
    waits, runs = short(hour.whole.wait_p95), short(hour.whole.run_p95)
    times = f"wait p95 {waits or '-'}  run p95 {runs or '-'}"
    texts = [
        f"{title}{overview.at:%Y-%m-%d %H:%M:%S} UTC",
        counts,
        f"{speed}  {bars([minute.ended for minute in hour.steps[-MINUTES:]])}  {times}",
        *_urgent(overview.notices),
    ]
    lines = [fitted_line(without_controls(text), columns) for text in texts]
    return [Line(lines[0], is_heading=True), *map(Line, lines[1:])]


def _urgent(notices: Sequence[Notice]) -> list[str]:
    """Return the first notices, and the number of the others."""
    texts = [_notice(notice) for notice in notices[:MOST_NOTICES]]
    left = len(notices) - len(texts)
    return [*texts, f"! and {left:,} more: see `taskqueue doctor`"] if left else texts


def _notice(notice: Notice) -> str:
    mark = "!!" if notice.level == ERROR else "!"
    return f"{mark} {' '.join(notice.sentence.split())}"


def _queues(overview: Overview) -> Section:
    """Return the queues, those with the most waiting tasks first."""
    ordered = sorted(overview.queues, key=lambda queue: (-queue.waiting, queue.name))
    return [
        (
            queue.name,
            str(queue.waiting_count),
            short(queue.oldest_seconds),
            f"{queue.running}/{queue.slots}",
            f"{queue.finished_last_hour:,}",
            _state(queue),
        )
        for queue in ordered
    ]


def _state(queue: ShownQueue) -> str:
    if queue.is_paused:
        by = f" by {queue.paused_by}" if queue.paused_by else ""
        until = f" until {queue.paused_until:%H:%M}" if queue.paused_until else ""
        return f"paused{by}{until}"
    return "" if queue.is_served else "not served"


def _workers(overview: Overview) -> Section:
    return [
        (
            worker.name,
            worker.host,
            str(worker.pid),
            worker.state + (f", asked to {worker.request}" if worker.request else ""),
            f"{worker.busy}/{worker.slots}",
            size(worker.memory_bytes),
            f"{short(worker.seen_seconds)} ago",
            worker.trouble,
        )
        for worker in overview.workers
        if _is_shown(worker)
    ]


def _is_shown(worker: ShownWorker) -> bool:
    return worker.state in LIVING or (worker.state == LOST and worker.seen_seconds < NEWS)


def _running(overview: Overview) -> Section:
    return [
        (
            attempt.name,
            attempt.queue_name,
            attempt.worker_name,
            str(attempt.attempt),
            short(attempt.running_seconds),
            _progress(attempt),
            _remark(attempt),
        )
        for attempt in overview.running
    ]


def _progress(task: RunningTask) -> str:
    if task.progress is None:
        return ""
    done = max(0.0, min(100.0, task.progress))
    full = round(done / 100 * BAR)
    return f"{'#' * full}{'.' * (BAR - full)} {done:3.0f}%"


def _remark(task: RunningTask) -> str:
    if task.is_stopping:
        return "stopping"
    return "no output for long" if task.is_wedged else task.progress_message
