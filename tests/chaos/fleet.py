"""The workers of a run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from django.db import connection

from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Worker
from tests.chaos.databases import Database
from tests.chaos.history import Term
from tests.warm_start import WarmStarts
from tests.worker_process import WorkerProcess, wait_until, worker_environment

LEASE, PING, TAKEOVER_INTERVAL, CRASH_DELAY = 6.0, 1.0, 0.5, 0.5
LONG_LEASE = 20.0
"""For faults that are not about leases: none runs out because the machine is busy."""
SETTINGS: dict[str, Any] = {
    "LEASE_DURATION": LEASE,
    "PING_INTERVAL": PING,
    "TAKEOVER_INTERVAL": TAKEOVER_INTERVAL,
    "CRASH_DELAY": CRASH_DELAY,
    "PARK_DELAY": 0.5,
    "PARK_LIMIT": 15,
    "STOP_GRACE": 1,
    "KILL_GRACE": 1,
    "SHUTDOWN_TIMEOUT": 15,
}

LOCK_WAITS = """
    SELECT
        waiting.pid, left(waiting.query, 300),
        holding.pid, holding.state, left(holding.query, 300)
    FROM pg_stat_activity AS waiting
    LEFT JOIN pg_stat_activity AS holding ON holding.pid = ANY (pg_blocking_pids(waiting.pid))
    WHERE waiting.wait_event_type = 'Lock'
"""
LONGEST_END = 40.0
"""Seconds after SIGTERM in which a worker must have ended."""


class ChaosWorker(WorkerProcess):
    """A worker with a name, and a note of what was done to it."""

    name = ""
    is_expendable = False
    """Whether it may be gone at the end: somebody killed it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.deaths: list[float] = []
        """When it was killed, by the clock of the host, which is the database's too."""

    def whereabouts(self) -> str:
        """Where its threads stand, as the end of its log tells."""
        before = len(self.log())
        with suppress(ProcessLookupError, AssertionError):
            os.kill(self.pid, signal.SIGUSR1)
            wait_until(lambda: len(self.log()) > before, 10)
        return self.log()[-6000:]

    def kill(self) -> None:
        self.is_expendable = True
        self.deaths.append(time.time())
        super().kill()
        self.wait()


class Fleet:
    """Real workers on one database, and what was wrong with how they ended."""

    def __init__(self, database: Database, folder: Path, *, lease: float = LEASE) -> None:
        self.database = database
        self.folder = folder
        self.lease = lease
        self.workers: list[ChaosWorker] = []
        self.terms: list[Term] = []
        self.problems: list[str] = []
        self._warm_starts = WarmStarts(worker_environment({}))

    def now(self) -> float:
        """The database's clock."""
        return dialect_for(connection).now(connection).timestamp()

    def start_worker(
        self,
        pool: str = "process",
        concurrency: int = 2,
        *arguments: str,
        settings: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        wait_ready: bool = True,
    ) -> ChaosWorker:
        """Start a worker; names are w1, w2, …"""
        name = f"w{len(self.workers) + 1}"
        worker = ChaosWorker(
            "--name", name, "--pool", pool, "--concurrency", str(concurrency), *arguments,
            log_path=self.folder / f"{name}.log",
            env={**self.database.environment(), **(env or {})},
            settings={**SETTINGS, "LEASE_DURATION": self.lease, **(settings or {})},
            prefix=prefix,
            warm_starts=None if prefix else self._warm_starts,
        )  # fmt: skip
        worker.name = name
        self.workers.append(worker)
        if wait_ready:
            worker.wait_until_ready(90)
        return worker

    def start_fleet(self, *shapes: tuple[str, int]) -> None:
        """Start workers side by side: each a pool and its slots."""
        first = len(self.workers)
        for pool, concurrency in shapes:
            self.start_worker(pool, concurrency, wait_ready=False)
        for worker in self.workers[first:]:
            worker.wait_until_ready(90)

    def alive(self) -> list[ChaosWorker]:
        """The workers that run."""
        return [worker for worker in self.workers if worker.returncode is None]

    def end_workers(self) -> None:
        """End the workers that are left. One that is gone without a reason is a problem."""
        for worker in self.workers:
            if worker.returncode is not None and not worker.is_expendable:
                told = {term.worker_name for term in self.terms}
                if worker.name not in told:
                    self.problems.append(f"{worker.name} was gone, with {worker.returncode}")
        told_at = {worker.name: self.now() for worker in self.alive()}
        last = [worker for worker in self.workers if worker.name in told_at]
        for worker in last:
            worker.terminate()
        for worker in last:
            self._await_end(worker, told_at[worker.name])
        for row in Worker.objects.filter(name__in=told_at).exclude(status="stopped"):
            self.problems.append(f"{row.name} has ended, but its row says {row.status}")

    def _await_end(self, worker: ChaosWorker, told_at: float) -> None:
        try:
            self.await_soon(lambda: worker.returncode is not None, LONGEST_END, what="its end")
        except AssertionError:
            self.terms.append(Term(worker.name, told_at, None))
            said = f"{worker.name} still runs {LONGEST_END:g} s after SIGTERM"
            self.problems.append(f"{said}: {self.lock_waits()} {worker.whereabouts()}")
            return
        self.terms.append(Term(worker.name, told_at, self.now()))
        if worker.returncode:
            self.problems.append(f"{worker.name} ended with {worker.returncode} after SIGTERM")

    def await_soon(self, condition: Callable[[], object], seconds: float, *, what: str) -> None:
        """Wait no longer than that."""
        wait_until(condition, seconds, what=what)

    def lock_waits(self) -> list[tuple[Any, ...]]:
        """The statements that wait for locks, and the sessions that hold these."""
        if self.database.server is None:
            return []
        with connection.cursor() as cursor:
            cursor.execute(LOCK_WAITS)
            return list(cursor.fetchall())

    def destroy_workers(self) -> None:
        """End all their processes, whatever state they are in."""
        for worker in self.workers:
            with suppress(psutil.NoSuchProcess):
                for process in psutil.Process(worker.pid).children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
            worker.destroy()
        self._warm_starts.end()
