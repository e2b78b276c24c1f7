"""Processes that are stopped with SIGSTOP, at a moment at which none of them is writing.

On SQLite a process that is stopped within a write transaction keeps everybody from writing until it
goes on. So the write lock is taken first, and let go of when all of them have stopped.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
from django.db import connection

PATIENCE = 120.0
"""Seconds for what a busy machine delays: the write lock, or a signal's delivery."""
STOPPED_OR_ENDED = "TZX"
"""States of threads, as the kernel abbreviates them."""


def suspend(found: Callable[[], Sequence[psutil.Process]]) -> None:
    """Stop the processes that are found, until all of them have stopped.

    They are looked for again and again: one that had not stopped yet may have started another.
    """
    with nobody_writes():
        deadline = time.monotonic() + PATIENCE
        while running := [process for process in found() if not has_stopped(process)]:
            if time.monotonic() > deadline:
                raise AssertionError(f"Not stopped within {PATIENCE:.0f} s: {running}")
            for process in running:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGSTOP)
            time.sleep(0.005)


@contextmanager
def nobody_writes() -> Iterator[None]:
    """Hold the write lock of the test database, if it is SQLite's."""
    if connection.vendor != "sqlite":
        yield
        return
    name = connection.settings_dict["NAME"]
    with closing(sqlite3.connect(name, timeout=PATIENCE, isolation_level=None)) as session:
        session.execute("BEGIN IMMEDIATE")
        yield
        session.execute("ROLLBACK")


def has_stopped(process: psutil.Process) -> bool:
    """Whether each thread of it has stopped or ended; the first one stops before the others."""
    folder = Path(f"/proc/{process.pid}/task")
    try:
        return all(state_of(folder / thread) in STOPPED_OR_ENDED for thread in os.listdir(folder))
    except FileNotFoundError:
        return True


def state_of(thread: Path) -> str:
    """As the kernel abbreviates it."""
    try:
        # Behind the name of the program, which may have spaces.
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
