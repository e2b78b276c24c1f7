"""`top` as it goes on: reading again and again, and showing frames or documents."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from taskqueue.engine.connections import installed, open_worker_connection
from taskqueue.management.cli.base import TROUBLE, line_of
from taskqueue.management.cli.output import Output, without_controls
from taskqueue.management.cli.top.cells import fitted
from taskqueue.management.cli.top.frame import Line, frame
from taskqueue.management.cli.top.screen import Screen
from taskqueue.monitoring.overview import Overview, overview


def document(overview: Overview) -> dict[str, Any]:
    """Return the whole overview as an object."""
    last, whole = overview.last_minute, overview.hour.whole
    return {
        "at": overview.at,
        "tasks": {status: count.value for status, count in overview.counts.items()},
        "more_than_that": sorted(
            status for status, count in overview.counts.items() if count.is_capped
        ),
        "per_minute": last.ended,
        "this_minute": overview.this_minute.ended,
        "failed_per_minute": last.failed + last.lost,
        "wait_p95": whole.wait_p95,
        "run_p95": whole.run_p95,
        "queues": overview.queues,
        "workers": [asdict(worker) for worker in overview.workers],
        "running": [asdict(task) for task in overview.running],
        "notices": [asdict(notice) for notice in overview.notices],
    }


SILENCE = 5.0
"""Seconds without an answer after which the database is reported as silent."""


@dataclass(frozen=True)
class Seen:
    """The last reading."""

    overview: Overview | None = None
    """The last overview that could be read."""
    trouble: str = ""
    """The last error of the database; empty: none."""


class Reader:
    """Reads at an interval, on a connection of its own that is reopened after errors.

    It does not keep the process from exiting.
    """

    def __init__(self, *, interval: float, on_read: Callable[[], None]) -> None:
        self._interval = interval
        self._on_read = on_read
        self._seen = Seen()
        self._asked_at: float | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="taskqueue-top", daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join(timeout=0.5)

    @property
    def seen(self) -> Seen:
        """The last reading, with how long the database has been silent since."""
        asked_at = self._asked_at
        silent = 0.0 if asked_at is None else time.monotonic() - asked_at
        if silent < SILENCE:
            return self._seen
        return Seen(self._seen.overview, f"No answer for {silent:.0f} s")

    def _run(self) -> None:
        connection: Any = None
        while not self._is_over.is_set():
            self._asked_at = time.monotonic()
            try:
                connection = connection or open_worker_connection(silence=SILENCE)
                with installed(connection):
                    self._seen = Seen(overview())
            except TROUBLE as error:
                self._seen = Seen(self._seen.overview, _said(error))
                _close(connection)
                connection = None
            self._asked_at = None
            self._on_read()
            self._is_over.wait(self._interval)
        _close(connection)


def _close(connection: Any) -> None:
    if connection is not None:
        connection.close()


def _said(error: Exception) -> str:
    return without_controls(f"No answer, trying again: {line_of(error)}")


TICK = 1.0
"""Seconds after which a frame is drawn again without a new reading."""


def watch(title: str, *, interval: float) -> None:
    """Show frames until q or Ctrl-C is pressed."""
    try:
        with Screen() as screen, Reader(interval=interval, on_read=screen.ring) as reader:
            while screen.wait(TICK):
                columns, rows = screen.size
                screen.show(lines_of(reader.seen, columns=columns, rows=rows, title=title))
    except KeyboardInterrupt:
        pass


def lines_of(seen: Seen, *, columns: int, rows: int, title: str) -> list[Line]:
    """Return the last overview as lines, below the current error."""
    lines: list[Line] = []
    if seen.trouble:
        lines.append(Line(fitted(seen.trouble, columns), is_heading=True))
    if seen.overview is not None:
        lines += frame(seen.overview, columns=columns, rows=rows - len(lines), title=title)
    return lines[:rows]


def stream(output: Output, *, interval: float) -> None:
    """Print one document per line until Ctrl-C. Raises BrokenPipeError when the reader left."""
    has_read = threading.Event()
    try:
        with Reader(interval=interval, on_read=has_read.set) as reader:
            while True:
                has_read.wait()
                has_read.clear()
                seen = reader.seen
                told: dict[str, Any] = (
                    {"error": seen.trouble}
                    if seen.trouble or seen.overview is None
                    else document(seen.overview)
                )
                output.line(told)
    except KeyboardInterrupt:
        pass
