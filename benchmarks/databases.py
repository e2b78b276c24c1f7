"""The databases of a benchmark, and filling them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.fillings import FILLINGS, NOOP
from benchmarks.processes import ROOT, client, django_command
from benchmarks.rates import RATE, rate_together
from project.postgres import Server

WORKFLOWS = ("workflow", "step", "dependency", "stepcalls", "stepend", "member")
TABLES = "SELECT string_agg(tablename, ', ') FROM pg_tables WHERE tablename = ANY (%s)"

RATE_OF_WORKER = """
SELECT count(*) / EXTRACT(epoch FROM max(finished_at) - min(claimed_at))::float8
FROM taskqueue_lease
WHERE worker_id = %s
"""

WORKED = """
SELECT EXTRACT(epoch FROM min(claimed_at)), EXTRACT(epoch FROM max(finished_at))
FROM taskqueue_lease
"""

# All leases of one claim begin at one moment.
BATCH = """
SELECT count(*)::float8 / greatest(1, count(DISTINCT (worker_id, claimed_at)))
FROM taskqueue_lease
"""

FINISHED_BETWEEN = """
SELECT count(*) FROM taskqueue_lease
WHERE finished_at BETWEEN to_timestamp(%s) AND to_timestamp(%s)
"""

RATE_SQLITE = """
SELECT count(*) / (86400.0 * (julianday(max(finished_at)) - julianday(min(claimed_at))))
FROM taskqueue_lease
"""


UPDATED = ("task", "lease")
UPDATES = """
SELECT pg_stat_get_tuples_updated(oid), pg_stat_get_tuples_hot_updated(oid)
FROM pg_class
WHERE oid = %s::regclass
"""
Updates = dict[str, tuple[int, int]]


def updates_between(before: Updates, after: Updates) -> Updates:
    """All updates between two looks, and the heap-only ones, by table."""
    return {
        table: (after[table][0] - all_before, after[table][1] - hot_before)
        for table, (all_before, hot_before) in before.items()
    }


class PostgreSQL:
    """A migrated database on the benchmark's server; `root` holds the code that works on it."""

    def __init__(
        self, server: Server, name: str, *, template: str | None = None, root: Path = ROOT
    ) -> None:
        self.settings: Mapping[str, Any] = server.django_settings(name)
        self.root = root
        if template is None:
            server.create_database(name)
        else:
            server.query(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        if template is None:
            _migrate(self.settings, root)
        self._dsn = f"host={server.host} port={server.port} user=postgres dbname={name}"
        self._connection: psycopg.Connection[Any] | None = None

    @property
    def where(self) -> dict[str, Any]:
        """The settings and the code with which a process works on it."""
        return {"settings": self.settings, "root": self.root}

    def query(self, sql: Any, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement on a connection of the benchmark's own; its rows."""
        if self._connection is None:
            self._connection = psycopg.connect(self._dsn, autocommit=True)
        cursor = self._connection.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the benchmark's own connection: a template may have none."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def empty(self) -> None:
        """Leave no task, no lease, no workflow and no event."""
        tables = self._tables(
            "task", "lease", "tasklog", "worker", "event", "eventbatch", *WORKFLOWS
        )
        self.query(f"TRUNCATE {tables}")

    def fill(self, status: str, count: int, *, task: str = "noop") -> None:
        """Add tasks of a status, and leave the tables as autovacuum would."""
        self.add(status, count, task=task)
        self.settle()

    def add(self, status: str, count: int, *, task: str = "noop") -> None:
        """Add tasks of a status."""
        step = 250_000
        filling = FILLINGS[status].replace(NOOP, f"'benchmarks.tasks.{task}'")
        for start in range(0, count, step):
            self.query(filling, (min(step, count - start),))

    def enqueue(self, count: int, *, task: str = "noop") -> None:
        """Enqueue tasks by the code that this database belongs to."""
        _enqueue(self, count, task)

    def disable_autovacuum(self) -> None:
        """Leave dead rows where they are."""
        for table in ("task", "lease", "tasklog", "worker", "arrival", "rollup"):
            self.query(f"ALTER TABLE taskqueue_{table} SET (autovacuum_enabled = off)")

    def settle(self) -> None:
        """Do what autovacuum would in its time."""
        self.query(f"VACUUM (ANALYZE) {self._tables('task', 'lease', *WORKFLOWS)}")

    def _tables(self, *names: str) -> str:
        """Those of the tables that there are: an older commit need not have all of them."""
        rows = self.query(TABLES, ([f"taskqueue_{name}" for name in names],))
        return str(rows[0][0])

    def rate(self, workers: int) -> float:
        """Tasks a second that so many workers claimed and recorded together, by their leases."""
        return rate_together(self.query(RATE), workers)

    def batch(self) -> float:
        """How many tasks a claim took, in the mean."""
        return float(self.query(BATCH)[0][0])

    def rate_of(self, worker: str) -> float:
        """Tasks a second that this worker claimed and recorded."""
        return float(self.query(RATE_OF_WORKER, (worker,))[0][0])

    def worked(self) -> tuple[float, float]:
        """The moments of the first claim and of the last end, in seconds since the epoch."""
        began, ended = self.query(WORKED)[0]
        return float(began), float(ended)

    def finished_between(self, began: float, ended: float) -> int:
        """How many attempts ended then."""
        return int(self.query(FINISHED_BETWEEN, (began, ended))[0][0])

    def updates(self) -> Updates:
        """All updates of the hot tables, and the heap-only ones; of sessions that have ended."""
        found = {name: self.query(UPDATES, (f"taskqueue_{name}",))[0] for name in UPDATED}
        return {name: (int(row[0]), int(row[1])) for name, row in found.items()}

    def succeeded(self) -> int:
        """How many tasks have."""
        rows = self.query("SELECT count(*) FROM taskqueue_task WHERE status = 'succeeded'")
        return int(rows[0][0])


class SQLite:
    """A migrated database in a file."""

    def __init__(self, path: Path, *, root: Path = ROOT) -> None:
        self._path = path
        self.root = root
        self.settings: Mapping[str, Any] = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(path),
            "OPTIONS": {
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
            },
        }
        _migrate(self.settings, root)

    @property
    def where(self) -> dict[str, Any]:
        """The settings and the code with which a process works on it."""
        return {"settings": self.settings, "root": self.root}

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement; its rows."""
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=20)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def close(self) -> None:
        """Nothing is open between two statements."""

    def empty(self) -> None:
        """Leave no task and no lease."""
        for table in ("task", "lease", "worker"):
            self.query(f"DELETE FROM taskqueue_{table}")

    def fill(self, count: int) -> None:
        """Enqueue no-op tasks."""
        self.enqueue(count)

    def enqueue(self, count: int, *, task: str = "noop") -> None:
        """Enqueue tasks by the code that this database belongs to."""
        _enqueue(self, count, task)

    def rate(self) -> float:
        """Tasks a second that were claimed and recorded, by their leases."""
        return float(self.query(RATE_SQLITE)[0][0])


def _enqueue(database: PostgreSQL | SQLite, count: int, task: str) -> None:
    with client("enqueue_noops", count, task, **database.where) as process:
        process.output()


def _migrate(settings: Mapping[str, Any], root: Path) -> None:
    with django_command("migrate", "--verbosity=0", settings=settings, root=root) as process:
        process.output()
