"""`top` as it goes on: a frame, or a document, again and again, whatever the database does."""

from __future__ import annotations

import threading
from typing import Any

from taskqueue.management.cli.output import Output
from taskqueue.management.cli.top.cells import fitted
from taskqueue.management.cli.top.document import document
from taskqueue.management.cli.top.frame import Line, frame
from taskqueue.management.cli.top.reading import Reader, Seen
from taskqueue.management.cli.top.screen import Screen

TICK = 1.0
"""Seconds after which a frame is drawn again, though nothing was read."""


def watch(title: str, *, interval: float) -> None:
    """Show frames until somebody leaves by q or Ctrl-C."""
    try:
        with Screen() as screen, Reader(interval=interval, on_read=screen.ring) as reader:
            while screen.wait(TICK):
                columns, rows = screen.size
                screen.show(lines_of(reader.seen, columns=columns, rows=rows, title=title))
    except KeyboardInterrupt:
        pass


def lines_of(seen: Seen, *, columns: int, rows: int, title: str) -> list[Line]:
    """The last that is known, below what is wrong now."""
    lines: list[Line] = []
    if seen.trouble:
        lines.append(Line(fitted(seen.trouble, columns), is_heading=True))
    if seen.overview is not None:
        lines += frame(seen.overview, columns=columns, rows=rows - len(lines), title=title)
    return lines[:rows]


def stream(output: Output, *, interval: float) -> None:
    """Print a document a line until Ctrl-C. Raises BrokenPipeError once nobody reads any more."""
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
