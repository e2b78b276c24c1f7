"""Faults within the database: locks, snapshots, limits, and what it refuses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.db import connection

from taskqueue.models import Lease, Task
from tests.chaos import kinds, tasks
from tests.chaos.databases import address_of
from tests.chaos.faults.base import BOTH, POSTGRESQL, Fault
from tests.chaos.faults.outages import no_crashes
from tests.chaos.fleet import LEASE
from tests.sample.tasks import noop


class OldSnapshot(Fault):
    """A transaction elsewhere holds an old snapshot, so that nothing dead can be removed."""

    name = "old_snapshot"
    expectation = "the work goes on meanwhile, and recovers after"
    databases = POSTGRESQL
    seconds = 8.0

    def strike(self) -> None:
        import psycopg

        stage = self.stage
        with psycopg.connect(address_of(stage.database)) as holder:
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM taskqueue_task")
            began = stage.now()
            stage.await_load(1)
            stage.settle(60)
        stage.note(self.name, began)

    def look(self) -> Iterator[str]:
        yield from no_crashes()


class AutovacuumOff(Fault):
    """Autovacuum is off; many tasks pass first, and are deleted, so that the dead rows are many."""

    name = "autovacuum_off"
    expectation = "the work goes on; nothing is counted as a crash"
    databases = POSTGRESQL
    is_quick = True
    server_settings = {"autovacuum": "off"}

    def prepare(self) -> None:
        stage = self.stage
        self._trigger("DISABLE")  # What passes before the load is not judged.
        for _ in range(PASSING):
            noop.enqueue_many([((), {})] * stage.count)
        drain = stage.start_worker("process", 2, "--drain", wait_ready=False)
        drain.is_expendable = True
        drain.wait(120)
        self._first, self._last = (row[0] for row in stage.execute(RATES))
        for table in ("lease", "task", "rollup", "total", "arrival"):
            stage.execute(f"DELETE FROM taskqueue_{table}")
        self._trigger("ENABLE")
        super().prepare()

    def _trigger(self, verb: str) -> None:
        for table in ("task", "lease"):
            self.stage.execute(f"ALTER TABLE taskqueue_{table} {verb} TRIGGER USER")

    def strike(self) -> None:
        self.stage.await_load(1)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        (dead,) = self.stage.execute(DEAD)[0]
        if dead < PASSING * self.stage.count:
            yield f"only {dead} rows are dead: the fault did not happen"

    def note(self) -> str:
        return f"tasks a second: the first quarter {self._first:,.0f}, the last {self._last:,.0f}"


PASSING = 25
"""How often the load, in tasks without bodies, passes before it."""
RATES = """
WITH part AS (
    SELECT finished_at, ntile(4) OVER (ORDER BY finished_at) AS number FROM taskqueue_lease
)
SELECT count(*) / EXTRACT(epoch FROM max(finished_at) - min(finished_at))::float8
FROM part
WHERE number IN (1, 4)
GROUP BY number
ORDER BY number
"""
DEAD = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'taskqueue_task'"


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
                crowd.append(psycopg.connect(address_of(stage.database)))
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
        leases = Lease.objects.filter(task__in=refused)
        if leases.filter(status="succeeded").exists():
            yield "an attempt whose outcome was refused has succeeded"
        # Others end when their thread pool's child is killed by a sibling, before they are refused.
        refusals = Counter(leases.filter(status="failed").values_list("task_id", flat=True))
        if any(count > 1 for count in refusals.values()):
            yield "a task whose outcome was refused was run again"
