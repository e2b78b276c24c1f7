"""Where processor time goes while a worker drains, which can be measured on a busy machine too."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import psutil  # type: ignore[import-untyped]

from benchmarks.databases import PostgreSQL

INTERVAL = 0.05
SKIPPED = 0.25
"""The share of a run, from its first claim, in which processes may still be starting."""
CHILD = ("taskqueue.worker.child", "taskqueue-child")
"""The module in a child's command line, where it was started clean, and its own name."""

Seconds = dict[str, float]


class Sampler:
    """Reads, from a thread, what processes, their children and the server have used."""

    def __init__(self, pids: Sequence[int], server: int) -> None:
        self._processes = [psutil.Process(pid) for pid in pids]
        self._server = psutil.Process(server)
        self._roles: dict[int, str] = {}
        self._used: dict[int, float] = {}
        self._samples: list[tuple[float, Seconds]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def microseconds(self, database: PostgreSQL) -> Seconds:
        """A task, by role: `parent`, `child`, `server`; empty where the run was too short."""
        began, ended = database.worked()
        began += SKIPPED * (ended - began)
        within = [sample for sample in self._samples if began <= sample[0] <= ended]
        if len(within) < 2:
            return {}
        (first_at, first), (last_at, last) = within[0], within[-1]
        tasks = database.finished_between(first_at, last_at)
        return {
            role: (seconds - first.get(role, 0.0)) / max(1, tasks) * 1e6
            for role, seconds in last.items()
        }

    def _run(self) -> None:
        while not self._end.wait(INTERVAL):
            with suppress(psutil.NoSuchProcess):
                self._sample()

    def _sample(self) -> None:
        own: list[psutil.Process] = []
        for process in self._processes:
            with suppress(psutil.NoSuchProcess):
                own += [process, *process.children(recursive=True)]
        for process in [*own, *self._server.children()]:
            # One that has just ended keeps what it had used.
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                self._roles[process.pid] = self._role(process, own)
                times = process.cpu_times()
                self._used[process.pid] = times.user + times.system
        seconds: Seconds = defaultdict(float)
        for pid, used in self._used.items():
            seconds[self._roles[pid]] += used
        self._samples.append((time.time(), dict(seconds)))

    def _role(self, process: psutil.Process, own: list[psutil.Process]) -> str:
        if process not in own:
            return "server"
        return "child" if is_child(process) else "parent"


def is_child(process: psutil.Process) -> bool:
    """Whether bodies run in it."""
    return not {*process.cmdline(), process.name()}.isdisjoint(CHILD)
