"""A real `runworker` in a process of its own, and waiting for what it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
from django.db import connection

from tests.pooler import Pooler
from tests.suspending import suspend
from tests.warm_start import WarmProcess, WarmStarts

ROOT = Path(__file__).resolve().parent.parent

T = TypeVar("T")

poolers: list[Pooler] = []
"""What the workers connect through; none: they connect to the server itself."""
PATIENCE = 60.0
"""Seconds that an event may take to come, on a machine that is busy with many other things."""


def wait_until(condition: Callable[[], T], timeout: float = PATIENCE, *, what: str = "") -> T:
    """Return the first true value of `condition()`; fail when none comes within `timeout` seconds.

    The last look begins when the time is over: one that this process had to wait in tells what was.

    >>> wait_until(lambda: Task.objects.filter(status="running").first())
    """
    deadline = time.monotonic() + timeout
    while True:
        is_over = time.monotonic() > deadline
        if value := condition():
            return value
        if is_over:
            raise AssertionError(f"Not within {timeout} s: {what or condition}")
        time.sleep(0.02)


def children_of(worker: int) -> list[psutil.Process]:
    """The processes in which a worker's bodies run: not its guardian, nor what bodies started."""
    found = []
    for process in psutil.Process(worker).children():
        with suppress(psutil.NoSuchProcess):  # It may end while it is looked at.
            # A copy of the template has the command line of the worker, and a name of its own.
            if process.name() == "taskqueue-child" or "taskqueue.worker.child" in process.cmdline():
                found.append(process)
    return found


def templates_of(worker: int) -> list[psutil.Process]:
    """The process that a worker's children are copies of, if there is one."""
    below = psutil.Process(worker).children()
    return [process for process in below if process.name() == "taskqueue-base"]


def guardian_of(worker: int) -> psutil.Process:
    """The process that ends a worker's children when nobody renews their leases."""
    return next(
        process
        for process in psutil.Process(worker).children()
        if any(part.endswith("guardian.py") for part in process.cmdline())
    )


class WorkerProcess:
    """A worker in a process group of its own, on the test database. Its output goes to a file."""

    def __init__(
        self,
        *arguments: str,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        prefix: Sequence[str] = (),
        warm_starts: WarmStarts | None = None,
    ) -> None:
        self.log_path = log_path
        run = ["runworker", "--noreload", *_slots(arguments, settings or {}), *arguments]
        self.command = [*prefix, sys.executable, "-m", "django", *run]
        environment = {**worker_environment(settings or {}), **(env or {})}
        self._process: WarmProcess | subprocess.Popen[bytes]
        if warm_starts is not None and (warm_start := warm_starts.fitting(environment)):
            self._process = warm_start.start(run, environment=environment, log_path=log_path)
            return
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal, or None while it runs."""
        return self._process.poll()

    def log(self) -> str:
        """Return what it has written to its standard output and error."""
        return self.log_path.read_text(errors="replace")

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the parent alone, as the kernel's out-of-memory killer would."""
        self._process.send_signal(signal.SIGKILL)

    def leave_no_proof(self) -> None:
        """Be as a worker of another host: nothing here proves to others that it has ended."""
        from taskqueue.models import Worker
        from taskqueue.worker import presence

        presence.forget(Worker.objects.filter(pid=self.pid).latest("started_at").incarnation)

    def suspend(self) -> None:
        """Stop the parent alone with SIGSTOP, outside its transactions on SQLite."""
        parent = psutil.Process(self.pid)
        suspend(lambda: [parent])

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def suspend_tree(self) -> None:
        """Stop the parent and all below it with SIGSTOP, outside their transactions on SQLite."""
        suspend(self._tree)

    def resume_tree(self) -> None:
        for process in self._tree():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)

    def _tree(self) -> list[psutil.Process]:
        """Children have process groups of their own, so each is told."""
        parent = psutil.Process(self.pid)
        return [parent, *parent.children(recursive=True)]

    def wait(self, timeout: float = PATIENCE) -> int:
        """Return the exit code once it has ended; fail, showing the log, when it does not."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"The worker still runs after {timeout} s.\n{self}") from None

    def wait_until_ready(self, timeout: float = 60) -> None:
        """Return once the worker has registered itself in the database."""
        from taskqueue.models import Worker

        def is_registered() -> bool:
            if self.returncode is not None:
                raise AssertionError(f"The worker ended before it was ready.\n{self}")
            return Worker.objects.filter(pid=self.pid).exists()

        try:
            wait_until(is_registered, timeout, what="a row for the worker")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self}") from None

    def destroy(self) -> None:
        """End it and everything in its process group, whatever state it is in."""
        # Also once the parent has ended: its children may be there still. The group's number
        # cannot have been given to anyone else while one of them lives.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(timeout=60)

    def __str__(self) -> str:
        return f"$ {' '.join(self.command)} -> {self.returncode}\n{self.log()}"


def _slots(arguments: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """As few as can be where a test names none: on any machine the same, and soon started."""
    is_named = any(each.startswith("--concurrency") for each in arguments)
    return [] if is_named or "CONCURRENCY" in settings else ["--concurrency", "1"]


def worker_address() -> dict[str, str]:
    """Return how workers reach the test database, as Django's settings name it."""
    keys = ("NAME", "USER", "PASSWORD", "HOST", "PORT")
    database = {key: str(connection.settings_dict[key]) for key in keys}
    return {**database, **poolers[-1].address} if poolers else database


def worker_environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return an environment in which `tests.settings` opens the test database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONUNBUFFERED": "1",
        "TASKQUEUE_TEST_DATABASE": connection.vendor,
        "TASKQUEUE_TEST_CONNECTION": json.dumps(worker_address()),
        "TASKQUEUE_TEST_SETTINGS": json.dumps(settings),
    }


def end_other_sessions() -> None:
    """End every other session on the test database, for a flush must not wait for their locks.

    PostgreSQL notices the death of a client only when it next hears nothing from it. On SQLite a
    process takes its locks along.
    """
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(END_OTHER_SESSIONS)


END_OTHER_SESSIONS = """
    SELECT pg_terminate_backend(pid, 5000)
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
