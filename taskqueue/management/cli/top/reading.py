"""Reading one overview after another in a thread, so that keys are heard while nobody answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taskqueue.engine.connections import installed, open_worker_connection
from taskqueue.management.cli.output import without_controls
from taskqueue.management.cli.trouble import TROUBLE, line_of
from taskqueue.monitoring.overview import Overview, overview

SILENCE = 5.0
"""Seconds that a network may take for an answer; of a server that hangs it is told after those."""


@dataclass(frozen=True)
class Seen:
    """What was read last."""

    overview: Overview | None = None
    """The last that there was."""
    trouble: str = ""
    """What the database said in its place."""


class Reader:
    """Reads every so many seconds, on a connection of its own that is opened again after trouble.

    Nobody waits for it: it keeps no process from ending.
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
        """What was read last, and for how long nobody has answered since."""
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
