"""How long SQLite's write lock is kept from a process that wants it as often as a worker does.

    python -m tests.chaos.lock_probe DATABASE FILE

Five times a second it takes the lock, tries as a heartbeat does, and adds a line to the file: from
when, until when. On PostgreSQL nothing is measured: there no lock keeps a worker from all others.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from tests.chaos.clients import whole_lines
from tests.chaos.history import Stall
from tests.chaos.pace import kept

REST = 0.2
TRY, RETRY = 0.1, 0.02
"""Seconds of one try and until the next, as `worker.heartbeat` has them."""
SHORTEST = 0.02
"""Seconds of a wait that is worth a line."""
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class LockProbe:
    """A process that measures from now on; `close` ends it."""

    def __init__(self, database: str, path: Path) -> None:
        self._path = path
        path.touch()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.lock_probe", database, str(path)],
            cwd=Path(__file__).resolve().parent.parent.parent,
            stdin=subprocess.DEVNULL,
        )

    def waits(self) -> tuple[Stall, ...]:
        """The waits until now."""
        return tuple(_wait(line) for line in whole_lines(self._path))

    def close(self) -> None:
        """Measure no more."""
        self._process.kill()
        self._process.wait()


def _wait(line: str) -> Stall:
    since, until = map(float, line.split())
    return Stall(since, until, until - since)


def beside(stalls: Iterable[Stall], waits: Iterable[Stall]) -> list[Stall]:
    """The waits for the lock, less what the machine kept from everybody meanwhile."""
    stalls = list(stalls)
    return [
        wait._replace(seconds=max(0.0, wait.seconds - kept(stalls, wait.since, wait.until)))
        for wait in waits
    ]


def measure(database: str, path: Path) -> None:
    """Write how it goes, for ever."""
    with (
        path.open("a", buffering=1) as file,
        closing(sqlite3.connect(database, isolation_level=None, timeout=TRY)) as session,
    ):
        while True:
            time.sleep(REST)
            since = time.time()
            while not gets_lock(session):
                time.sleep(RETRY)
            until = time.time()
            if until - since >= SHORTEST:
                file.write(f"{since} {until}\n")


def gets_lock(session: sqlite3.Connection) -> bool:
    """Whether the lock was free. Another error, as of a full disk, is no wait for the lock."""
    try:
        session.execute("BEGIN IMMEDIATE")
        session.execute("ROLLBACK")
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF not in BUSY
    return True


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]))
