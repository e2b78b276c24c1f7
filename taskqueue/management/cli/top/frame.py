"""One frame of `top`: an overview as lines for the size of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taskqueue.display import compact
from taskqueue.management.cli.cells import aligned, bars, fitted, size, without_controls
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.notices import ERROR, Notice
from taskqueue.monitoring.overview import Overview
from taskqueue.monitoring.read_models.attempt import RunningTask
from taskqueue.monitoring.read_models.queue import ShownQueue
from taskqueue.monitoring.read_models.worker import LIVING, LOST, ShownWorker

QUEUE = ("queue", "waiting", "oldest", "running", "last hour", "")
WORKER = ("worker", "host", "pid", "state", "busy", "memory", "seen", "")
RUNNING = ("running", "queue", "worker", "try", "for", "done", "")
# Minutes in the row of bars.
MINUTES = 30
# Seconds for which a lost worker is shown.
NEWS = 3600.0
MOST_NOTICES = 3
BAR = 10
Cells = tuple[str, ...]


class Line(NamedTuple):
    """A line of a frame."""

    text: str
    is_heading: bool = False


def frame(
    overview: Overview, *, columns: int, rows: int | None = None, title: str = ""
) -> list[Line]:
    """Return at most `rows` lines; all lines without a limit."""
    queues = sorted(overview.queues, key=lambda queue: (-queue.waiting, queue.name))
    workers = filter(_is_shown, overview.workers)
    sections = [
        [QUEUE, *(list(map(_queue, queues)) or [("none",)])],
        [WORKER, *(list(map(_worker, workers)) or [("none",)])],
        [RUNNING, *(list(map(_attempt, overview.running)) or [("none",)])],
    ]
    lines = _top(overview, columns, title)
    if rows is not None:
        # Each section has a blank line and its heading above it; a section without rows is left
        # out.
        sections = sections[: max(0, (rows - len(lines)) // 3)]
        free = rows - len(lines) - 2 * len(sections)
        shares = shared([len(section) - 1 for section in sections], free)
        sections = [_cut(section, share) for section, share in zip(sections, shares, strict=True)]
    for section in sections:
        heading, *rest = aligned(section, columns=columns)
        lines += [Line(""), Line(heading, is_heading=True), *map(Line, rest)]
    return lines if rows is None else lines[: max(1, rows)]


def shared(wanted: Sequence[int], free: int) -> list[int]:
    """Share the free rows among sections: rows that a section does not need go to the others."""
    shares = [0] * len(wanted)
    for _ in range(min(free, sum(wanted))):
        open_places = [place for place, wants in enumerate(wanted) if shares[place] < wants]
        shares[min(open_places, key=shares.__getitem__)] += 1
    return shares


def _cut(section: list[Cells], share: int) -> list[Cells]:
    """Shorten the rows below the heading; the last one says how many more there are."""
    if len(section) - 1 <= share:
        return section
    return [*section[:share], (f"… {len(section) - share} more",)]


def _top(overview: Overview, columns: int, title: str) -> list[Line]:
    counts = "  ".join(f"{status} {count}" for status, count in overview.counts.items())
    hour, last = overview.hour, overview.last_minute
    speed = (
        f"{last.ended:,} a minute, {last.failed + last.lost:,} failed"
        f" (this one: {overview.this_minute.ended:,})"
    )
    waits, runs = short_duration(hour.whole.wait_p95), short_duration(hour.whole.run_p95)
    times = f"wait p95 {waits or '-'}  run p95 {runs or '-'}"
    texts = [
        f"{title}{overview.at:%Y-%m-%d %H:%M:%S} UTC",
        counts,
        f"{speed}  {bars([minute.ended for minute in hour.steps[-MINUTES:]])}  {times}",
        *map(_notice, overview.notices[:MOST_NOTICES]),
    ]
    if (left := len(overview.notices) - MOST_NOTICES) > 0:
        texts.append(f"! and {left:,} more: see `taskqueue doctor`")
    first, *rest = (fitted(without_controls(text).rstrip(), columns) for text in texts)
    return [Line(first, is_heading=True), *map(Line, rest)]


def _notice(notice: Notice) -> str:
    mark = "!!" if notice.level == ERROR else "!"
    return f"{mark} {' '.join(notice.sentence.split())}"


def _queue(queue: ShownQueue) -> Cells:
    state = "" if queue.is_served else "not served"
    if queue.is_paused:
        by = f" by {queue.paused_by}" if queue.paused_by else ""
        until = f" until {queue.paused_until:%H:%M}" if queue.paused_until else ""
        state = f"paused{by}{until}"
    return (
        queue.name,
        str(queue.waiting_count),
        short_duration(queue.oldest_seconds),
        f"{queue.running}/{queue.slots}",
        f"{queue.finished_last_hour:,}",
        state,
    )


def _is_shown(worker: ShownWorker) -> bool:
    return worker.state in LIVING or (worker.state == LOST and worker.seen_seconds < NEWS)


def _worker(worker: ShownWorker) -> Cells:
    return (
        worker.name,
        worker.host,
        str(worker.pid),
        worker.state
        + (f", asked to {worker.request}" if worker.request else "")
        + (", changing" if worker.is_changing else ""),
        f"{worker.busy}/{worker.slots}",
        size(worker.memory_bytes),
        f"{short_duration(worker.seen_seconds)} ago",
        worker.trouble,
    )


def _attempt(attempt: RunningTask) -> Cells:
    detail = "" if attempt.progress_detail is None else compact(attempt.progress_detail)
    said = " ".join(filter(None, (attempt.progress_message, detail)))
    remark = "no output for long" if attempt.is_wedged else said
    return (
        attempt.name,
        attempt.queue_name,
        attempt.worker_name,
        str(attempt.attempt),
        short_duration(attempt.running_seconds),
        "" if attempt.progress is None else _bar(attempt.progress),
        "stopping" if attempt.is_stopping else remark,
    )


def _bar(progress: float) -> str:
    done = max(0.0, min(100.0, progress))
    full = round(done / 100 * BAR)
    return f"{'#' * full}{'.' * (BAR - full)} {done:3.0f}%"
