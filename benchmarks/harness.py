"""What all measurements share: the server, its databases, how often and how much."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.databases import PostgreSQL, SQLite
from project.postgres import Server

# Large enough that no checkpoint falls into one side of a comparison. Autovacuum runs as it does in
# production: what it learns of a table changes plans, for the worse too.
SERVER_SETTINGS: dict[str, str | int] = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
}


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is measured."""

    rounds: int
    tasks: int
    """Tasks of one drain on PostgreSQL."""
    sqlite_tasks: int
    single_enqueues: int
    bulk: int
    samples: int
    """Enqueues whose pick-up is timed."""
    idle_seconds: float
    backlog: int
    finished: int
    dead: int
    """Tasks that pass while nothing removes dead rows."""
    backlog_tasks: int
    """Tasks claimed and recorded beside a backlog, in one round."""


DEFAULT = Size(
    rounds=4,
    tasks=40_000,
    sqlite_tasks=20_000,
    single_enqueues=2_000,
    bulk=10_000,
    samples=200,
    idle_seconds=25,
    backlog=1_000_000,
    finished=1_000_000,
    dead=200_000,
    backlog_tasks=20_000,
)
FULL = replace(DEFAULT, finished=10_000_000, dead=1_000_000)
QUICK = Size(
    rounds=2,
    tasks=6_000,
    sqlite_tasks=3_000,
    single_enqueues=300,
    bulk=10_000,
    samples=30,
    idle_seconds=4,
    backlog=50_000,
    finished=50_000,
    dead=60_000,
    backlog_tasks=3_000,
)


@dataclass
class Bench:
    """One run: an embedded PostgreSQL that lives as long, and a folder for SQLite's files."""

    size: Size
    fsync: bool = True
    synchronous_commit: bool = True
    _opened: list[PostgreSQL] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.server = Server(
            fsync=self.fsync,
            synchronous_commit=self.synchronous_commit,
            settings=SERVER_SETTINGS,
        )
        self.server.start()
        self._folder = tempfile.TemporaryDirectory(prefix="taskqueue-benchmark-")
        self._postgresql: PostgreSQL | None = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for database in self._opened:
            database.close()
        self.server.close()
        self._folder.cleanup()

    @property
    def postgresql(self) -> PostgreSQL:
        """The database that most measurements share; empty."""
        if self._postgresql is None:
            self._postgresql = PostgreSQL(self.server, "benchmark")
            self._opened.append(self._postgresql)
        self._postgresql.empty()
        return self._postgresql

    def new_postgresql(self, name: str) -> PostgreSQL:
        """A database of a measurement's own; empty."""
        self.postgresql.close()
        database = PostgreSQL(self.server, name, template="benchmark")
        self._opened.append(database)
        return database

    def drop(self, database: PostgreSQL) -> None:
        """Give its space back."""
        database.close()
        self._opened.remove(database)
        self.server.query(f'DROP DATABASE "{database.settings["NAME"]}" WITH (FORCE)')

    def new_sqlite(self, name: str) -> SQLite:
        """A file of a measurement's own; empty."""
        return SQLite(Path(self._folder.name) / f"{name}.sqlite3")


def say(text: str) -> None:
    """Tell whoever waits what is being done."""
    print(text, file=sys.stderr, flush=True)
