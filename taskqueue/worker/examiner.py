"""The duty that has the doctor run every few minutes, by one worker at a time."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from threading import Thread

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.engine.connections import transaction
from taskqueue.engine.examinations import IS_OLD, IS_REQUESTED, take_turn
from taskqueue.worker.duty_turn import Timed

logger = logging.getLogger("taskqueue.worker")

PROGRAM = "taskqueue.worker.bodies.examining"
# Seconds for which a new worker examines only if somebody asks for it: it may soon have ended.
FIRST = 60.0
# Seconds after which an examination is given up.
LONGEST = 120.0


class Examiner:
    """Starts the process of an examination, which writes what it finds by itself."""

    def __init__(self, *, worker_name: str, host: str) -> None:
        self._worker_name = worker_name
        self._host = host
        self._process: subprocess.Popen[bytes] | None = None

    def duties(self) -> tuple[Timed, ...]:
        """Return the duties: look for a request, and for whether the last time is long ago."""
        if "DJANGO_SETTINGS_MODULE" not in os.environ:  # A new process would have no settings.
            return ()
        return (
            Timed(self.step, every=5, again=5.0, looks=(IS_REQUESTED,)),
            Timed(self.step, every=30, looks=(IS_OLD,), next_at=time.monotonic() + FIRST),
        )

    def step(self, connection: BaseDatabaseWrapper) -> None:
        """Begin an examination, unless one is running, or another worker has begun it."""
        if self._process is not None and self._process.poll() is None:
            return
        with transaction(connection):
            is_own = take_turn(connection)
        if is_own:
            try:
                self._process = self._start()
            except OSError as error:  # No outage of the database.
                logger.error("Examination not started error=%s", one_line(error))
            else:
                Thread(target=_await_end, args=(self._process,), daemon=True).start()

    def end(self) -> None:
        """End an examination that is running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        setup = {
            "path": sys.path,
            "argv0": sys.argv[0],
            "parent": os.getpid(),
            "worker_name": self._worker_name,
            "host": self._host,
        }
        return subprocess.Popen(
            [sys.executable, "-m", PROGRAM],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TASKQUEUE_EXAMINATION": json.dumps(setup)},
            start_new_session=True,
        )


def _await_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of an examination, and end it if it takes too long."""
    try:
        process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        logger.error("Examination given up seconds=%s", LONGEST)
        process.kill()
        process.wait()
