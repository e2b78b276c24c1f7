"""`top` as it goes on: a frame, or a document, again and again, whatever the database does."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from taskqueue.engine.connections import installed, open_worker_connection
from taskqueue.management.cli.output import plain, without_controls
from taskqueue.management.cli.top.cells import fitted
from taskqueue.management.cli.top.document import document
from taskqueue.management.cli.top.frame import Line, frame
from taskqueue.management.cli.top.screen import Screen
from taskqueue.management.cli.trouble import TROUBLE
from taskqueue.monitoring.overview import Overview, overview

SILENCE = 5.0
"""Seconds that a network may take for an answer."""


class Source:
    """Reads on a connection of its own, opened again after trouble."""

    def __init__(self) -> None:
        self._connection: Any = None

    def read(self) -> Overview:
        """Raises what the database raises where it cannot be asked."""
        if self._connection is None:
            self._connection = open_worker_connection(silence=SILENCE)
        try:
            with installed(self._connection):
                return overview()
        except TROUBLE:
            self.close()
            raise

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def watch(title: str, *, interval: float) -> None:
    """Show frames until somebody leaves by q or Ctrl-C."""
    source = Source()
    with Screen() as screen:
        try:
            last: Overview | None = None
            trouble = ""
            is_on = True
            while is_on:
                try:
                    last, trouble = source.read(), ""
                except TROUBLE as error:
                    trouble = _said(error)
                until = time.monotonic() + interval
                while True:
                    screen.show(_frame(screen, last, title, trouble))
                    left = until - time.monotonic()
                    if left <= 0:
                        break
                    is_on = screen.wait(left)
                    if not is_on:
                        break
        except KeyboardInterrupt:
            pass
        finally:
            source.close()


def _frame(screen: Screen, last: Overview | None, title: str, trouble: str) -> list[Line]:
    """The last that is known, below what is wrong now."""
    columns, rows = screen.size
    lines: list[Line] = []
    if trouble:
        lines = [Line(fitted(f"{trouble} It is tried again.", columns), is_heading=True)]
    if last is not None:
        lines += frame(last, columns=columns, rows=max(1, rows - len(lines)), title=title)
    return lines[:rows]


def stream(*, interval: float) -> None:
    """Print a document a line until Ctrl-C, or until nobody reads any more."""
    source = Source()
    try:
        while True:
            try:
                told: dict[str, Any] = document(source.read())
            except TROUBLE as error:
                told = {"error": _said(error)}
            sys.stdout.write(json.dumps(told, default=plain) + "\n")
            sys.stdout.flush()
            time.sleep(interval)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # What is still to be flushed at the end must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        source.close()


def _said(error: Exception) -> str:
    said = " ".join(str(error).split("\n", 1)[0].split()) or type(error).__name__
    return without_controls(f"The database did not do it: {said}.".replace("..", "."))
