"""`Worker`: a worker that a script or a test starts, waits for, and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, Self, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from taskqueue.core.retries import seconds_of
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import Duration, TaskQueueError
from taskqueue.results import TaskResult
from taskqueue.results.workflows import WorkflowRun

Result = TaskResult[Any] | WorkflowRun
Until = Literal["drained"] | Duration | Result | Iterable[Result] | Callable[[], object] | None
ADDRESS = ("NAME", "USER", "PASSWORD", "HOST", "PORT")
LOOK_EVERY = 0.05
# Seconds beyond its shutdown timeout after which a worker that is to end is killed.
LATE = 30.0
# Ends the worker with the thread that started it, on Linux: prctl, signal TERM.
LAUNCH = """
import sys
if sys.platform == "linux":
    import ctypes, os
    ctypes.CDLL(None).prctl(1, 15)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(0)
from django.core.management import execute_from_command_line
execute_from_command_line(["django", "runworker", *sys.argv[2:]])
"""


class Worker:
    """A worker in a separate process, with this process's settings and databases.

    The arguments are the flags of `runworker`. In a `with` statement it works until the end of the
    block; `run()` starts it, waits, and ends it. Its output is that of this process.
    """

    def __init__(
        self,
        *,
        queues: str = "",
        strict: bool = False,
        tags: str = "",
        definition_slots: str = "",
        concurrency: int | None = None,
        pool: Literal["process", "thread"] | None = None,
        name: str = "",
        max_tasks: int | None = None,
        max_memory: float | None = None,
        shutdown_timeout: Duration | None = None,
        poll_interval: Duration | None = None,
    ) -> None:
        flags = {
            "queues": queues, "tags": tags, "definition-slots": definition_slots,
            "concurrency": concurrency, "pool": pool, "name": name, "max-tasks": max_tasks,
            "max-memory": max_memory, "shutdown-timeout": _seconds(shutdown_timeout),
            "poll-interval": _seconds(poll_interval),
        }  # fmt: skip
        self._arguments = ["--noreload", *(["--strict"] if strict else [])]
        self._arguments += [f"--{flag}={value}" for flag, value in flags.items() if value]
        if shutdown_timeout == 0:
            self._arguments.append("--shutdown-timeout=0")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The pid of the worker's parent process; None while it does not work."""
        return None if self._process is None else self._process.pid

    def run(self, until: Until = None, *, timeout: Duration | None = None) -> None:
        """Run until a condition holds, then finish running tasks and end.

        `until` is one result or several, which have to finish; "drained", when no due task is
        left; a duration; or a function that is called every 50 ms until it returns a true value.
        None: until a signal ends the worker. Raises `TimeoutError` after `timeout`, and
        `TaskQueueError` if the worker cannot start or ends unexpectedly. Raises
        `ImproperlyConfigured` if another process cannot see the tasks.
        """
        is_met = _condition(until)
        deadline = None if timeout is None else time.monotonic() + seconds_of(timeout)
        process = self._start(["--drain"] if until == "drained" else [])
        try:
            while not is_met():
                if process.poll() is not None:
                    break
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError("The worker has not come to what it was run for in time.")
                time.sleep(LOOK_EVERY)
        finally:
            code = self.stop()
        if code != 0:
            raise TaskQueueError(f"The worker ended with exit code {code}: see its output.")

    def start(self) -> None:
        """Start it. Raises `ImproperlyConfigured` if another process cannot see the tasks."""
        self._start([])

    def stop(self) -> int:
        """Let it finish running tasks, then end it; return its exit code, 0 if it did not run."""
        process, self._process = self._process, None
        if process is None:
            return 0
        is_asked = process.poll() is None
        if is_asked:
            process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(self._longest_end())
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        # The signal itself ends one that has not begun to heed it, and so has claimed nothing.
        return 0 if is_asked and code == -signal.SIGTERM else code

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        code = self.stop()
        if code != 0 and error is None:
            raise TaskQueueError(f"The worker ended with exit code {code}: see its output.")

    def _start(self, further: list[str]) -> subprocess.Popen[bytes]:
        if self._process is not None:
            raise TaskQueueError(
                "This worker works already. Make another one for a second process."
            )
        _check_is_shared()
        command = [sys.executable, "-c", LAUNCH, str(os.getpid()), *self._arguments, *further]
        self._process = subprocess.Popen(
            command, env={**os.environ, **environment()}, stdin=subprocess.DEVNULL
        )
        return self._process

    def _longest_end(self) -> float:
        from taskqueue.conf import get_settings

        own = [each for each in self._arguments if each.startswith("--shutdown-timeout=")]
        default = get_settings().SHUTDOWN_TIMEOUT.total_seconds()
        return LATE + (float(own[0].partition("=")[2]) if own else default)


def environment() -> dict[str, str]:
    """Return the variables with which another process has the settings and databases of this one.

    Also the databases of a test. Raises `ImproperlyConfigured` without a module of settings.
    """
    module = getattr(settings, "SETTINGS_MODULE", None)
    if module is None:
        raise ImproperlyConfigured(
            "A worker needs a module of settings: DJANGO_SETTINGS_MODULE, not settings.configure()."
        )
    databases = {
        connection.alias: {key: str(connection.settings_dict[key]) for key in ADDRESS}
        for connection in connections.all()
    }
    return {
        "DJANGO_SETTINGS_MODULE": "taskqueue.testing.live_settings",
        "TASKQUEUE_LIVE_SETTINGS": json.dumps({"module": module, "databases": databases}),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONUNBUFFERED": "1",
    }


def _check_is_shared() -> None:
    connection = connections[database_alias()]
    if connection.vendor == "sqlite" and cast(Any, connection).is_in_memory_db():
        raise ImproperlyConfigured(
            "The database is SQLite in memory, where no other process sees it. Give it a file."
        )
    if connection.in_atomic_block:
        raise ImproperlyConfigured(
            "No other process sees what this transaction does. Start the worker outside of it."
        )


def _condition(until: Until) -> Callable[[], object]:
    if until is None or until == "drained":
        return lambda: False  # The process ends by itself.
    if isinstance(until, int | float | timedelta) and not isinstance(until, bool):
        end = time.monotonic() + seconds_of(until)
        return lambda: time.monotonic() >= end
    if isinstance(until, TaskResult | WorkflowRun):
        return _all_finished([until])
    if callable(until):
        return until
    if isinstance(until, str | bytes) or not isinstance(until, Iterable):
        raise TypeError(
            "until must be a result or several, a duration, a function or 'drained', "
            f"not {until!r}."
        )
    return _all_finished(list(until))


def _all_finished(results: list[Result]) -> Callable[[], bool]:
    for result in results:
        if not isinstance(result, TaskResult | WorkflowRun):
            raise TypeError(f"until must hold results of enqueues, not {result!r}.")

    def is_met() -> bool:
        while results:
            results[-1].refresh()
            if not results[-1].is_finished:
                return False
            results.pop()
        return True

    return is_met


def _seconds(duration: Duration | None) -> float | None:
    return None if duration is None else seconds_of(duration)
