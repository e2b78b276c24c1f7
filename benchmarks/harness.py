"""The parts that all measurements share: the server, its databases, repetitions and sizes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from benchmarks.databases import PostgreSQL, SQLite
from benchmarks.processes import ROOT
from benchmarks.revision import tree_of
from project.postgres import Server

# Large enough that no checkpoint falls into one side of a comparison. Autovacuum runs as it does in
# production: what it learns of a table changes plans, for the worse too.
SERVER_SETTINGS: dict[str, str | int] = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
}


OURS = "this code"
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is measured."""

    rounds: int
    tasks: int
    """Tasks of one drain on PostgreSQL."""
    sqlite_tasks: int
    single_enqueues: int
    bulk: int
    bulk_turns: int
    """Enqueues in bulk that each side of a comparison has in one round."""
    samples: int
    """Enqueues of one round whose pick-up is timed."""
    idle_seconds: float
    backlog: int
    finished: int
    dead: int
    """Tasks that pass while nothing removes dead rows."""
    backlog_tasks: int
    """Tasks claimed and recorded beside a backlog, in one round."""
    waiting_workflows: int
    finished_workflows: int


DEFAULT = Size(
    rounds=5,
    tasks=40_000,
    sqlite_tasks=20_000,
    single_enqueues=2_000,
    bulk=10_000,
    bulk_turns=8,
    samples=100,
    idle_seconds=25,
    backlog=1_000_000,
    finished=1_000_000,
    dead=200_000,
    backlog_tasks=20_000,
    waiting_workflows=10_000,
    finished_workflows=100_000,
)
FULL = replace(DEFAULT, finished=10_000_000, dead=1_000_000)
QUICK = Size(
    rounds=2,
    tasks=6_000,
    sqlite_tasks=3_000,
    single_enqueues=300,
    bulk=10_000,
    bulk_turns=4,
    samples=15,
    idle_seconds=4,
    backlog=50_000,
    finished=50_000,
    dead=60_000,
    backlog_tasks=3_000,
    waiting_workflows=500,
    finished_workflows=5_000,
)


@dataclass
class Bench:
    """One run: an embedded PostgreSQL that lives as long, and a folder for SQLite's files."""

    size: Size
    fsync: bool = True
    synchronous_commit: bool = True
    against: str | None = None
    """The commit whose code is measured in the same rounds."""
    _opened: list[PostgreSQL] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.server = Server(
            fsync=self.fsync,
            synchronous_commit=self.synchronous_commit,
            settings=SERVER_SETTINGS,
        )
        self.server.start()
        self._folder = tempfile.TemporaryDirectory(prefix="taskqueue-benchmark-")
        self._postgresql: dict[str, PostgreSQL] = {}
        folder = Path(self._folder.name)
        self.roots = {OURS: ROOT}
        if self.against:
            self.roots[self.against] = tree_of(self.against, folder / "against")
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
        return self.postgresql_of(OURS)

    @property
    def others(self) -> list[str]:
        """The commits whose code is measured beside this one's."""
        return [revision for revision in self.roots if revision != OURS]

    def postgresql_of(self, revision: str) -> PostgreSQL:
        """That of a commit's code; empty."""
        if revision not in self._postgresql:
            name = "benchmark" if revision == OURS else "benchmark_against"
            database = PostgreSQL(self.server, name, root=self.roots[revision])
            self._postgresql[revision] = database
            self._opened.append(database)
        self._postgresql[revision].empty()
        return self._postgresql[revision]

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

    def new_sqlite(self, name: str, revision: str = OURS) -> SQLite:
        """A file of a measurement's own; empty."""
        side = "" if revision == OURS else "-against"
        path = Path(self._folder.name) / f"{name}{side}.sqlite3"
        return SQLite(path, root=self.roots[revision])


def in_turn(sides: Iterable[T], number: int) -> list[T]:
    """The sides of a round: each round begins with another one."""
    known = list(sides)
    first = number % len(known)
    return known[first:] + known[:first]


def say(text: str) -> None:
    """Tell whoever waits what is being done."""
    print(text, file=sys.stderr, flush=True)
