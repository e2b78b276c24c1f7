"""The probe that measures how long SQLite's write lock is kept from everybody else."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.history import Stall
from tests.chaos.lock_probe import LockProbe, gets_lock
from tests.worker_process import wait_until


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A session that can hold the lock."""
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as session:
        session.execute("PRAGMA journal_mode = WAL")
        yield session


def test_only_the_lock_of_another_session_is_waited_for(
    holder: sqlite3.Connection, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None, timeout=0)) as session:
        assert gets_lock(session)
        holder.execute("BEGIN IMMEDIATE")
        assert not gets_lock(session)
        holder.execute("ROLLBACK")
        assert gets_lock(session)
    assert gets_lock(session), "It is closed, which is no wait."


def test_the_probe_writes_down_how_long_it_waited(
    holder: sqlite3.Connection, tmp_path: Path
) -> None:
    def hold() -> tuple[Stall, ...]:
        holder.execute("BEGIN IMMEDIATE")
        time.sleep(0.3)  # For so long the probe cannot have it.
        holder.execute("ROLLBACK")
        return probe.waits()

    with closing(LockProbe(str(tmp_path / "db"), tmp_path / "waits")) as probe:
        began = time.time()
        for wait in wait_until(hold):
            assert began <= wait.since < wait.until <= time.time()
            assert wait.seconds == wait.until - wait.since
