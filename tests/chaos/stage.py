"""The stage of one run: workers, a client, a database, and the actions of a fault on them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from django.db import DatabaseError, connection

from taskqueue.core.states import FINISHED
from taskqueue.models import Lease, Task
from tests.chaos import tasks
from tests.chaos.client import Client
from tests.chaos.databases import Database
from tests.chaos.feed_rows import Heard
from tests.chaos.fleet import LEASE, ChaosWorker, Fleet
from tests.chaos.history import Fault, Stall
from tests.chaos.kinds import Kind, mixture
from tests.chaos.limit_rows import LimitChange
from tests.chaos.lock_probe import LockProbe
from tests.chaos.pace import Pace, kept
from tests.chaos.proxy import ProxyProcess
from tests.chaos.takeover import Hit
from tests.chaos.workflow_rows import VerbRow
from tests.worker_process import wait_until

T = TypeVar("T")


class Stage(Fleet):
    """What a run consists of. `close` ends all processes that it started."""

    def __init__(
        self,
        database: Database,
        *,
        folder: Path,
        seed: int,
        count: int,
        seconds: float,
        duration: float = 0.0,
        lease: float = LEASE,
    ) -> None:
        super().__init__(database, folder, lease=lease)
        self.count = count
        self.seconds = seconds
        self.duration = duration
        self.chance = random.Random(seed)
        self.journal = folder / "journal"
        self.kinds: list[Kind] = list(mixture())
        self.hits: list[Hit] = []
        self.faults: list[Fault] = []
        self.verbs: list[VerbRow] = []
        self.limit_changes: list[LimitChange] = []
        self.heard: Heard | None = None
        self._cleanups: list[Callable[[], object]] = []
        self.pace = Pace(folder / "pace")
        self.at_end(self.pace.close)
        self._lock_probe: LockProbe | None = None
        if database.vendor == "sqlite":
            self._lock_probe = LockProbe(database.connection["NAME"], folder / "lock-waits")
            self.at_end(self._lock_probe.close)
        self._client: Client | None = None

    def lock_waits(self) -> tuple[Stall, ...]:
        """How long SQLite's write lock was kept from a process beside the workers."""
        return self._lock_probe.waits() if self._lock_probe else ()

    def proxy(self) -> ProxyProcess:
        """A proxy in front of the server."""
        address = self.database.connection
        proxy = ProxyProcess(address["HOST"], int(address["PORT"]))
        self.at_end(proxy.close)
        return proxy

    def at_end(self, cleanup: Callable[[], object]) -> None:
        """Do this when the run is over, however it ends; the last first."""
        self._cleanups.append(cleanup)

    # Who enqueues

    @property
    def client(self) -> Client:
        """The client; it is started with the load."""
        assert self._client is not None
        return self._client

    def start_load(self) -> None:
        """Begin to enqueue."""
        self._client = Client(
            log_path=self.folder / "client",
            journal_path=self.journal,
            kinds=self.kinds,
            chance=random.Random(self.chance.random()),
            count=self.count,
            seconds=self.seconds,
        )
        self._client.start()

    def await_load(self, share: float, *, timeout: float = 60) -> None:
        """Wait until that share of the load was asked for; the rest comes meanwhile."""
        wait_until(
            lambda: self.client.asked >= share * self.count or self.client.is_over.is_set(),
            timeout, what=f"{share:.0%} of the load",
        )  # fmt: skip

    def await_work(self, lines: int = 10, *, timeout: float = 60) -> None:
        """Wait until bodies have started that often since now."""
        before = self._journal_size()
        wait_until(
            lambda: self._journal_size() > before + 80 * lines or self.is_idle(),
            timeout, what="some work",
        )  # fmt: skip

    def await_lease(self, worker: ChaosWorker, *, seconds: float = 2.0) -> None:
        """Have a worker hold a task whose body takes that many seconds, so that a fault hits it.

        One task after the other: many of them would keep their successors waiting for a slot.
        """
        long = tasks.work.using(priority=10, metadata={"kind": "long"})
        for _ in range(50):
            result = long.enqueue(str(self.journal), seconds)
            lease = Lease.objects.filter(task_id=result.id)
            if wait_until(lease.first, 60, what="a claim").worker_id == worker.name:
                return
        raise AssertionError(f"{worker.name} claimed none of 50 tasks")

    def await_soon(self, condition: Callable[[], object], seconds: float, *, what: str) -> None:
        """Wait no longer than that, beside what the machine keeps from everybody."""
        began = time.time()
        while not condition():
            now = time.time()
            if now - began - kept(self.pace.stalls(), began, now) > seconds:
                raise AssertionError(f"Not within {seconds} s: {what}")
            time.sleep(0.05)

    def pause(self, least: float, most: float) -> None:
        """Let the seed choose when the fault comes."""
        time.sleep(self.chance.uniform(least, most))

    def _journal_size(self) -> int:
        return self.journal.stat().st_size if self.journal.exists() else 0

    # What is asked of the database

    def is_idle(self) -> bool:
        """Whether all that was enqueued has ended."""
        return self.client.is_over.is_set() and not self.open_tasks()

    def open_tasks(self) -> int:
        """How many tasks have not ended; -1 while the database does not answer."""
        return self.ask(lambda: Task.objects.exclude(status__in=FINISHED).count(), -1)

    def ask(self, question: Callable[[], T], otherwise: T) -> T:
        """Put a question to a database that may be away."""
        try:
            return question()
        except DatabaseError:
            with suppress(Exception):
                connection.close()
            return otherwise

    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement, on the runner's own connection."""
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall()) if cursor.description else []

    def move_database(self, folder: Path) -> None:
        """Move SQLite's file elsewhere, before anybody works on it."""
        connection.close()
        self.database.move(folder)
        connection.settings_dict.update(self.database.connection)

    # What is done to workers

    def hit(self, worker: ChaosWorker, how: Callable[[], object]) -> Hit:
        """Do something to a worker that ends its leases; note which ones it held."""
        leases = Lease.objects.filter(worker_id=worker.name, status="running", is_shared=False)
        attempts = leases.values_list("task_id", "attempt")
        at, before = self.now(), set(attempts)
        how()
        # A claim may have been under way; or the end was recorded before anybody could look.
        hit = Hit(at, tuple(before | set(attempts.all())))
        self.hits.append(hit)
        return hit

    def note(self, name: str, began_at: float, *workers: ChaosWorker) -> None:
        """Write down when a fault was, for the checker."""
        names = tuple(worker.name for worker in workers)
        self.faults.append(Fault(name, began_at, self.now(), names))

    # The end

    def settle(self, timeout: float) -> bool:
        """Wait until the client is done and all tasks have ended; whether they have."""
        self.client.join(timeout)
        if self.client.error is not None:
            raise self.client.error
        deadline = time.monotonic() + timeout
        while self.open_tasks() != 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def close(self) -> None:
        """End all processes, and take back what was done to the machine."""
        if self._client is not None:
            self._client.is_over.set()
            self._client.join(10)
        self.destroy_workers()
        for cleanup in reversed(self._cleanups):
            with suppress(Exception):
                cleanup()
        connection.close()
