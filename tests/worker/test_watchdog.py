"""The guardian ends processes whose parent has gone silent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from taskqueue.worker.watchdog import Watchdog
from tests.worker_process import wait_until

Process = subprocess.Popen[bytes]


def _sleeping() -> Iterator[Process]:
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    yield process
    process.kill()
    process.wait()


sleeper = pytest.fixture(_sleeping)
other = pytest.fixture(_sleeping)


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    watchdog = Watchdog()
    yield watchdog
    watchdog.close()


@contextmanager
def frozen(watchdog: Watchdog) -> Iterator[None]:
    """The guardian hears what is said meanwhile in one go, however long it takes to say it."""
    os.kill(watchdog._process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(watchdog._process.pid, signal.SIGCONT)


def test_a_process_dies_at_its_deadline(watchdog: Watchdog, sleeper: Process) -> None:
    watchdog.live_until(sleeper.pid, time.monotonic() + 0.1)
    assert sleeper.wait(30) == -signal.SIGKILL


def test_a_later_deadline_replaces_an_earlier_one(watchdog: Watchdog, sleeper: Process) -> None:
    with frozen(watchdog):
        watchdog.live_until(sleeper.pid, time.monotonic() + 0.5)
        began = time.monotonic()
        watchdog.live_until(sleeper.pid, began + 1.5)
    sleeper.wait(30)
    assert time.monotonic() - began >= 1.5


def test_a_process_that_is_forgotten_is_left_alone(
    watchdog: Watchdog, sleeper: Process, other: Process
) -> None:
    with frozen(watchdog):
        watchdog.live_until(sleeper.pid, time.monotonic() + 0.3)
        watchdog.forget(sleeper.pid)
        watchdog.live_until(other.pid, time.monotonic() + 0.4)
    assert other.wait(30) == -signal.SIGKILL  # The other's deadline was before that.
    with pytest.raises(subprocess.TimeoutExpired):
        sleeper.wait(0.3)


@pytest.mark.slow
def test_a_guardian_that_was_frozen_past_a_deadline_acts_as_it_wakes(
    watchdog: Watchdog, sleeper: Process, other: Process
) -> None:
    # So far away that the guardian has started and is frozen before, on a busy machine too.
    deadline = time.monotonic() + 15
    watchdog.live_until(sleeper.pid, deadline)
    watchdog.live_until(other.pid, time.monotonic() + 0.1)
    other.wait(30)  # From here on it waits for the deadline.
    with frozen(watchdog):
        rest = deadline - time.monotonic()
        wait_until(lambda: time.monotonic() > deadline, 30)
        assert sleeper.poll() is None
    assert sleeper.wait(rest * 0.9) == -signal.SIGKILL  # The rest of its wait was longer.


def test_processes_die_with_the_watchdog(sleeper: Process) -> None:
    watchdog = Watchdog()
    watchdog.live_until(sleeper.pid, time.monotonic() + 600)
    watchdog.close()
    assert sleeper.wait(30) == -signal.SIGKILL


def test_a_guardian_that_is_killed_is_replaced(watchdog: Watchdog, sleeper: Process) -> None:
    watchdog.live_until(sleeper.pid, time.monotonic() + 600)
    first = watchdog._process.pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: watchdog._process.poll() is not None, 30)
    watchdog.live_until(sleeper.pid, time.monotonic() + 0.1)
    assert watchdog._process.pid != first
    assert sleeper.wait(30) == -signal.SIGKILL
