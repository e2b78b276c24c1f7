"""Locks that other sessions hold."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from django.db import connection

from taskqueue.models import Lease, Task
from tests.chaos.databases import ROOT, address_of
from tests.chaos.faults.base import POSTGRESQL, SQLITE, Fault
from tests.chaos.faults.outages import OWN_CRASH, no_crashes
from tests.chaos.fleet import LEASE, LONG_LEASE
from tests.chaos.stage import Stage
from tests.sample import worker_tasks
from tests.sample.models import Effect

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
    lease = LONG_LEASE
    share = 0.8
    seconds = 8.0
    server_settings = {"deadlock_timeout": "50ms"}

    def strike(self) -> None:
        stage = self.stage
        began = stage.now()
        stage.await_load(0.05)
        address = address_of(stage.database)
        stormers = [
            _python(stage, STORM, self.chance.randrange(10**6), address, 7) for _ in range(2)
        ]
        for stormer in stormers:
            stormer.wait(60)
        if any(stormer.returncode for stormer in stormers):
            stage.problems.append("the storm itself broke down: see storm.log")
        stage.note(self.name, began, *stage.workers)

    def look(self) -> Iterator[str]:
        yield from no_crashes()


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


MINUTE = 60.0


class TableLocked(Fault):
    """A client locks the table of tasks for a minute; on SQLite the whole database."""

    name = "table_locked"
    expectation = "workers and enqueues wait, then go on; no attempt is lost"
    seconds = 8.0

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.3)
        stage.await_lease(self.chance.choice(stage.workers), seconds=20.0)
        began = stage.now()
        if connection.vendor == "postgresql":
            self._lock("taskqueue_task")
        else:
            _python(stage, HOLD, stage.database.connection["NAME"], MINUTE).wait(2 * MINUTE)
        stage.note(self.name, began)

    def _lock(self, table: str) -> None:
        import psycopg

        with psycopg.connect(address_of(self.stage.database)) as holder:
            holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            time.sleep(MINUTE)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        # Only the lease's own row is needed to renew it.
        yield from (
            f"{lease} was lost: {lease.error_message}"
            for lease in Lease.objects.filter(status="lost").exclude(OWN_CRASH)
        )


HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("BEGIN EXCLUSIVE")
time.sleep(float(sys.argv[2]))
connection.execute("ROLLBACK")
"""


class LeasesLocked(TableLocked):
    """A client locks the table of leases for a minute."""

    name = "leases_locked"
    expectation = "no lease can be renewed: bodies end in time, and run again once it is free"
    databases = POSTGRESQL

    def _lock(self, table: str) -> None:
        super()._lock("taskqueue_lease")

    def look(self) -> Iterator[str]:
        # Whether its own worker or another one ends a lease first, once the table is free, decides
        # whether a crash is counted.
        return iter(())


def _python(stage: Stage, code: str, *arguments: object) -> subprocess.Popen[bytes]:
    with (stage.folder / "storm.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, stdout=log, stderr=log
        )
    stage.at_end(process.kill)
    return process
