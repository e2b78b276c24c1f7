"""Run a real worker process for tests that commit, on the databases of the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.embedded import environment
from taskqueue.engine.connections import database_alias
from taskqueue.models import Worker

# Seconds within which a worker has its row in the database.
LONGEST_START = 60.0
LOOK_EVERY = 0.05
# Seconds after which a worker that should have ended is killed.
LONGEST_END = 60.0


class LiveWorker:
    """A worker in a separate process."""

    def __init__(self, process: subprocess.Popen[bytes], log_path: Path) -> None:
        self.process = process
        self._log_path = log_path

    @property
    def pid(self) -> int:
        """The pid of the worker's parent process."""
        return self.process.pid

    def log(self) -> str:
        """Return the worker's output so far."""
        return self._log_path.read_text(errors="replace")

    def end(self) -> None:
        """Let the worker finish running tasks, and end. Raises AssertionError if it ended badly."""
        self.process.send_signal(signal.SIGTERM)
        self.wait_until_ended()

    def wait_until_ended(self) -> None:
        """Wait until the worker has ended.

        Raises AssertionError if it ended badly, or not at all.
        """
        try:
            code = self.process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            raise self._error(f"The worker has not ended in {LONGEST_END:g} s") from None
        finally:
            self.process.kill()
            self.process.wait()
        if code != 0:
            raise self._error(f"The worker ended with {code}")

    def _error(self, message: str) -> AssertionError:
        return AssertionError(f"{message}:\n{self.log()[-8000:]}")

    def end_after(self, error: BaseException) -> None:
        """End the worker after the test has failed with an error, which at most gets a note."""
        try:
            self.end()
        except AssertionError as worse:
            if str(worse) != str(error):
                error.add_note(str(worse))

    def wait_until_ready(self, known: Collection[int]) -> None:
        """Wait until the worker has a new row, or has done its work and ended.

        Raises AssertionError if neither happens.
        """
        deadline = time.monotonic() + LONGEST_START
        while self.process.poll() is None:
            if _rows().filter(pid=self.pid).exclude(id__in=known).exists():
                return
            if time.monotonic() > deadline:
                raise self._error(f"No worker within {LONGEST_START:g} s")
            time.sleep(LOOK_EVERY)
        self.end()


@contextmanager
def live_worker(*arguments: str) -> Iterator[LiveWorker]:
    """Run `runworker` with these arguments in another process until the end of the block.

    The block begins once the worker has started. Raises AssertionError if the worker does not
    start, or ends badly. With `--drain`, the end of the block waits until the worker has run the
    tasks that it found, for a minute at most. For tests that commit, and wait with
    `result.wait(timeout=…)`. The worker uses the settings of the project's module, without those
    that the test overrides. Raises `ImproperlyConfigured` if another process cannot see the test's
    database.
    """
    for connection in connections.all():
        check_is_shared(connection)
    known = list(_rows().values_list("id", flat=True))
    with TemporaryDirectory() as folder:
        log_path = Path(folder, "worker.log")
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "django", "runworker", "--noreload", *arguments],
                env={**os.environ, **environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        worker = LiveWorker(process, log_path)
        try:
            worker.wait_until_ready(known)
            yield worker
        except BaseException as error:
            worker.end_after(error)
            raise
        if "--drain" in arguments:
            # The worker ends by itself; a request to end might arrive before it has claimed
            # anything.
            worker.wait_until_ended()
        else:
            worker.end()


def check_is_shared(connection: BaseDatabaseWrapper) -> None:
    """Raise `ImproperlyConfigured` unless other processes can see what the test writes here."""
    if connection.vendor == "sqlite" and cast(Any, connection).is_in_memory_db():
        raise ImproperlyConfigured(
            f"The tests' SQLite database {connection.alias!r} is in memory, where no other process "
            "sees it. Give it a file: "
            f"DATABASES[{connection.alias!r}]['TEST'] = {{'NAME': 'test.sqlite3'}}."
        )
    if connection.in_atomic_block:
        raise ImproperlyConfigured(
            "No other process sees what this test does in its transaction. Use one that commits: "
            "TransactionTestCase, or pytest.mark.django_db(transaction=True). In a transaction, "
            "run_due() runs tasks."
        )


def _rows() -> QuerySet[Worker]:
    return Worker.objects.using(database_alias())
