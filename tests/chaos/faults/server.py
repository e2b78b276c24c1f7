"""Faults within the database: locks, snapshots, limits, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.db import connection

from taskqueue.models import Lease, Task
from tests.chaos import kinds, tasks
from tests.chaos.faults.base import BOTH, POSTGRESQL, SQLITE, Fault
from tests.chaos.faults.outages import no_crashes
from tests.chaos.stage import LEASE
from tests.sample import worker_tasks
from tests.sample.models import Effect
from tests.worker_process import ROOT

STORM = """
import random, sys, time
import psycopg
chance, dsn = random.Random(int(sys.argv[1])), sys.argv[2]
end = time.monotonic() + float(sys.argv[3])
deadlocks = 0
with psycopg.connect(dsn) as connection:
    connection.execute("SET deadlock_timeout = '50ms'")
    connection.commit()
    while time.monotonic() < end:
        level = chance.choice(("READ COMMITTED", "SERIALIZABLE"))
        table = chance.choice(("taskqueue_task", "taskqueue_lease", "taskqueue_worker"))
        where = "" if table == "taskqueue_worker" else "WHERE finished_at IS NULL"
        try:
            connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            for _ in range(chance.randint(1, 3)):
                connection.execute(
                    f"SELECT 1 FROM {table} {where} ORDER BY random() LIMIT %s FOR UPDATE",
                    (chance.randint(1, 20),),
                )
                table = "taskqueue_task"
                where = "WHERE finished_at IS NULL"
                time.sleep(chance.uniform(0, 0.05))
            if chance.random() < 0.1:
                connection.execute("LOCK TABLE taskqueue_lease IN EXCLUSIVE MODE")
                time.sleep(chance.uniform(0, 0.2))
            connection.rollback() if chance.random() < 0.5 else connection.commit()
        except psycopg.errors.OperationalError as error:
            deadlocks += 1
            connection.rollback()
        time.sleep(chance.uniform(0, 0.02))
print(deadlocks)
"""


class LockStorm(Fault):
    """Clients lock rows of all tables in random order, at random isolation levels."""

    name = "lock_storm"
    expectation = "deadlocks and serialization failures are retried whole; no worker exits"
    databases = POSTGRESQL
    is_quick = True
    share = 0.8
    seconds = 8.0
    server_settings = {"deadlock_timeout": "50ms"}

    def strike(self) -> None:
        stage = self.stage
        began = stage.now()
        stage.await_load(0.05)
        stormers = [_python(stage, STORM, self.chance.randrange(10**6), _dsn(stage), 7)
                    for _ in range(2)]  # fmt: skip
        for stormer in stormers:
            stormer.wait(60)
        if any(stormer.returncode for stormer in stormers):
            stage.problems.append("the storm itself broke down: see storm.log")
        stage.note(self.name, began, *stage.workers)

    def look(self) -> Iterator[str]:
        yield from no_crashes()


class OldSnapshot(Fault):
    """A transaction elsewhere holds an old snapshot, so that nothing dead can be removed."""

    name = "old_snapshot"
    expectation = "the work goes on meanwhile, and recovers after"
    databases = POSTGRESQL
    seconds = 8.0

    def strike(self) -> None:
        import psycopg

        stage = self.stage
        with psycopg.connect(_dsn(stage)) as holder:
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM taskqueue_task")
            began = stage.now()
            stage.await_load(1)
            stage.settle(60)
        stage.note(self.name, began)

    def look(self) -> Iterator[str]:
        yield from no_crashes()


class ReadOnly(Fault):
    """The database turns read-only, as a primary does that has been demoted, and back."""

    name = "read_only"
    expectation = "enqueue raises clearly; outcomes are kept and sent again"
    databases = POSTGRESQL

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.2)
        began = stage.now()
        self._set("on")
        time.sleep(self.chance.uniform(1.0, LEASE + 2))
        self._set("off")
        stage.note(self.name, began, *stage.workers)

    def _set(self, value: str) -> None:
        self.stage.execute("SET SESSION default_transaction_read_only = off")
        self.stage.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        self.stage.execute("SELECT pg_reload_conf()")

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        if not any("read-only" in error for error in self.stage.client.errors):
            yield f"the client was not told that it is read-only, but {self.stage.client.errors}"


class TooManyConnections(Fault):
    """All connections that the server allows are taken by others."""

    name = "too_many_connections"
    expectation = "who is connected goes on; others come back once there is room"
    databases = POSTGRESQL
    server_settings = {"max_connections": 40, "superuser_reserved_connections": 0,
                       "reserved_connections": 0}  # fmt: skip

    def strike(self) -> None:
        import psycopg

        stage = self.stage
        stage.await_load(0.1)
        began = stage.now()
        crowd: list[Any] = []
        end = time.monotonic() + self.chance.uniform(2, LEASE + 1)
        while time.monotonic() < end:
            with suppress(psycopg.OperationalError):
                crowd.append(psycopg.connect(_dsn(stage)))
                continue
            # Push somebody out, and take the place: now and then a worker's.
            if self.chance.random() < 0.3:
                stage.execute(PUSH_OUT, self.chance.random())
            time.sleep(0.05)
        for session in crowd:
            session.close()
        stage.note(self.name, began, *stage.workers)

    def look(self) -> Iterator[str]:
        yield from no_crashes()


PUSH_OUT = """
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> ''
    OR datname = current_database() AND pid <> pg_backend_pid() AND %s < 0.5
ORDER BY random()
LIMIT 1
"""

REFUSE = {
    "postgresql": (
        "ALTER TABLE taskqueue_task ADD CONSTRAINT chaos_refusal"
        " CHECK (return_value IS DISTINCT FROM '\"refuse this\"'::jsonb)",
    ),
    "sqlite": (
        "CREATE TRIGGER chaos_refusal BEFORE UPDATE ON taskqueue_task"
        " WHEN NEW.return_value = '\"refuse this\"' BEGIN SELECT RAISE(ABORT, 'refused'); END",
    ),
}


class OutcomeRefused(Fault):
    """The database refuses some outcomes, in the midst of batches of others."""

    name = "outcome_refused"
    expectation = "that task fails with the reason; the others of its batch are recorded"
    databases = BOTH

    def prepare(self) -> None:
        refused = kinds.Kind(
            name="be_refused", weight=3, definition=tasks.be_refused,
            arguments=lambda path, chance: (path,), ends=frozenset({"failed"}), most=3,
        )  # fmt: skip
        self.stage.kinds.append(refused)
        for statement in REFUSE[connection.vendor]:
            self.stage.execute(statement)
        super().prepare()

    def strike(self) -> None:
        self.stage.await_load(1)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        refused = Task.objects.filter(metadata__kind="be_refused")
        if not refused.exists():
            yield "nothing was refused: the fault did not happen"
        for task in refused:
            if "refused the outcome" not in task.error_message:
                yield f"{task.id} does not say why it failed, but {task.error_message!r}"
        if Lease.objects.filter(task__in=refused).exclude(status="failed").exists():
            yield "an attempt whose outcome was refused was run more than once"


HOG = """
import random, sqlite3, sys, time
chance = random.Random(int(sys.argv[1]))
connection = sqlite3.connect(sys.argv[2], isolation_level=None, timeout=30)
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    connection.execute("BEGIN IMMEDIATE")
    time.sleep(chance.uniform(0.05, 2.5))
    connection.execute("ROLLBACK")
    time.sleep(chance.uniform(0.01, 0.3))
"""


class WriteLockHeld(Fault):
    """A body holds SQLite's write lock for longer than a lease; then another program hogs it."""

    name = "write_lock_held"
    expectation = "neither killed nor taken over: nobody else could write"
    databases = SQLITE
    is_quick = True
    share = 0.5
    fleet = (("process", 2), ("thread", 2))

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.1)
        began = stage.now()
        self._holder = worker_tasks.hold_write_lock.using(priority=50).enqueue(LEASE * 1.5)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not self._is_held():
            time.sleep(0.1)
        hog = _python(stage, HOG, self.chance.randrange(10**6),
                      stage.database.connection["NAME"], 6)  # fmt: skip
        hog.wait(60)
        stage.note(self.name, began, *stage.workers)

    def _is_held(self) -> bool:
        held = Effect.objects.filter(note="held the lock")
        return self.stage.ask(held.exists, False)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        task = Task.objects.get(id=self._holder.id)
        if (task.status, task.attempt) != ("succeeded", 1):
            yield f"the holder of the lock is {task.status} after {task.attempt} attempts"


def _python(stage: Any, code: str, *arguments: object) -> subprocess.Popen[bytes]:
    with (stage.folder / "storm.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, stdout=log, stderr=log
        )
    stage.at_end(process.kill)
    return process


def _dsn(stage: Any) -> str:
    address = stage.database.connection
    return (
        f"host={address['HOST']} port={address['PORT']} user={address['USER']}"
        f" dbname={address['NAME']} connect_timeout=5"
    )
