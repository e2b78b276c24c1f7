"""A small run with a bug in its workers, and the history that it leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from django.db import connection

from taskqueue.core.states import FINISHED
from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult
from tests.chaos.bugs import PLANTED
from tests.chaos.clients import ClientLog
from tests.chaos.feed_rows import Heard
from tests.chaos.gathering import gather, read_journal
from tests.chaos.history import Bounds, Death, Fault, History, Term
from tests.chaos.limit_rows import STOOD_STILL, LimitChange
from tests.worker_process import WorkerProcess, wait_until

SETTINGS: dict[str, Any] = {
    "LEASE_DURATION": 2,
    "PING_INTERVAL": 0.3,
    "TAKEOVER_INTERVAL": 0.2,
    "CRASH_DELAY": 0,
    "STOP_GRACE": 0.5,
    "KILL_GRACE": 0.5,
    "SHUTDOWN_TIMEOUT": 10,
}
LONG_LEASE = 60
BOUNDS = Bounds(
    lease=2, ping=0.3, takeover_interval=0.2, stop_grace=0.5, kill_grace=0.5, shutdown_timeout=10,
    slack=4, term_slack=0.6,
)  # fmt: skip


class Trial:
    """Workers with a bug, tasks, and a log of both. `close` ends all that it started."""

    def __init__(self, folder: Path, bug: str) -> None:
        self.folder = folder
        self.bug = bug
        self.journal = folder / "journal"
        self.log = ClientLog(folder / "client")
        self.results: list[TaskResult[Any]] = []
        self.workers: list[WorkerProcess] = []
        self.terms: list[Term] = []
        self.deaths: list[Death] = []
        self.faults: list[Fault] = []
        self.limit_changes: list[LimitChange] = []
        self.heard: Heard | None = None
        self.bounds = BOUNDS
        self._settings = dict(SETTINGS)
        self._sequence = 0

    def lengthen_leases(self) -> None:
        """Where a run is not about leases, none runs out, however busy the machine is."""
        self._settings["LEASE_DURATION"] = LONG_LEASE
        self.bounds = replace(BOUNDS, lease=LONG_LEASE)

    def start_worker(self, concurrency: int = 1, **settings: Any) -> WorkerProcess:
        """Start a worker in whose processes the bug is; they are named w1, w2, …"""
        worker = self.begin_worker(concurrency, settings)
        worker.wait_until_ready(60)
        return worker

    def start_workers(self, count: int, concurrency: int = 1) -> list[WorkerProcess]:
        """Start several side by side."""
        workers = [self.begin_worker(concurrency, {}) for _ in range(count)]
        for worker in workers:
            worker.wait_until_ready(60)
        return workers

    def begin_worker(self, concurrency: int, settings: Mapping[str, Any]) -> WorkerProcess:
        """Start a worker, and wait for nothing."""
        name = f"w{len(self.workers) + 1}"
        worker = WorkerProcess(
            "--name", name, "--concurrency", str(concurrency),
            log_path=self.folder / f"{name}.log",
            env={PLANTED: self.bug},
            settings={**self._settings, **settings},
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def enqueue(
        self, definition: Any, *args: Any, is_atomic: bool = False, expects: int = 1, **options: Any
    ) -> TaskResult[Any]:
        """As a client that logs what it does; the journal is the first argument of each body.

        `expects` is how many workers a broadcast must reach.
        """
        self._sequence += 1
        workers = options.get("workers", expects)
        self.log.asked(self._sequence, is_atomic=is_atomic, workers=workers)
        metadata = {"sequence": self._sequence}
        result = definition.using(metadata=metadata, **options).enqueue(str(self.journal), *args)
        self.log.ok(self._sequence, [result.id])
        self.results.append(result)
        return result  # type: ignore[no-any-return]

    def marks(self, text: str = "start", *, attempt: int = 1) -> int:
        """How many bodies of that attempt have left this mark."""
        lines = read_journal(self.journal)
        return sum(line.text == text and line.attempt == attempt for line in lines)

    def wait_for(self, condition: Callable[[], object], timeout: float = 40) -> None:
        """Wait for what happens with any bug too."""
        wait_until(condition, timeout, what=f"the trial of {self.bug or 'nothing'} to go on")

    def give_time(self, condition: Callable[[], object], seconds: float) -> None:
        """Wait for what happens with the bug only; without it, that it might, for so long."""
        with suppress(AssertionError):
            wait_until(condition, 40 if self.bug else seconds)

    def holder(self, definition: str = "") -> WorkerProcess:
        """The worker that runs something, of those that wait for it; first, of that definition."""
        running = Lease.objects.filter(status="running", task__name__contains=definition)
        name = str(running.order_by("id")[0].worker_id)
        return self.workers[int(name[1:]) - 1]

    def name_of(self, worker: WorkerProcess) -> str:
        """As the database knows it."""
        return f"w{self.workers.index(worker) + 1}"

    def settle(self, timeout: float, *, all_end: bool = False) -> bool:
        """Wait until all tasks have ended; no longer than this with a bug: they may never do.

        `all_end` says that they do with each bug of this run, so that nobody waits in vain.
        """
        self.wait_for(lambda: self.journal.exists())  # Children take long on a loaded machine.
        deadline = time.monotonic() + (6 * timeout if all_end or not self.bug else timeout)
        while Task.objects.exclude(status__in=FINISHED).exists():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def terminate(self, worker: WorkerProcess, timeout: float) -> None:
        """Tell a worker to end, and note when it did."""
        told_at = time.time()
        worker.terminate()
        deadline = time.monotonic() + timeout
        while worker.returncode is None and time.monotonic() < deadline:
            time.sleep(0.02)
        exited_at = None if worker.returncode is None else time.time()
        self.terms.append(Term(self.name_of(worker), told_at, exited_at))

    def pause_all(self) -> None:
        """Freeze the workers, so that what is read is not written at the same time."""
        for worker in self.workers:
            if worker.returncode is None:
                worker.suspend_tree()

    def history(self) -> History:
        """What there is to check."""
        return gather(
            client_log=self.log.path,
            journals=[self.journal],
            terms=self.terms,
            deaths=self.deaths,
            faults=self.faults,
            event_log=self.folder / "events",
            limit_changes=self.limit_changes,
            limit_repairs=sum(worker.log().count(STOOD_STILL) for worker in self.workers),
            heard=self.heard,
            bounds=self.bounds,
        )

    def close(self) -> None:
        """End every process."""
        for worker in self.workers:
            try:
                family = psutil.Process(worker.pid).children(recursive=True)
            except psutil.NoSuchProcess:
                family = []
            worker.destroy()
            for process in family:
                if process.is_running():
                    process.kill()
        self.log.close()

    def told(self) -> str:
        """The workers' logs, to find out why."""
        return "\n".join(str(worker) for worker in self.workers)


def clear_tables() -> None:
    """Leave no row of an earlier trial."""
    tables = (
        "chaos_change", "sample_effect", "taskqueue_tasklog", "taskqueue_lease", "taskqueue_audit",
        "taskqueue_stepend", "taskqueue_stepcalls", "taskqueue_member", "taskqueue_dependency",
        "taskqueue_step", "taskqueue_workflow", "taskqueue_workflowcount", "taskqueue_collected",
        "taskqueue_slot", "taskqueue_limitnote", "taskqueue_partition", "taskqueue_limiter",
        "taskqueue_limit", "taskqueue_task", "taskqueue_worker", "taskqueue_queue",
        "taskqueue_event", "taskqueue_eventbatch", "taskqueue_subscription",
        "taskqueue_audience",
    )  # fmt: skip
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"DELETE FROM {table}")
        cursor.execute("DELETE FROM chaos_change")
