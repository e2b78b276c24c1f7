"""The guardian ends processes whose parent has gone silent."""

from __future__ import annotations

import errno
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
    guardian = guardian_of(watchdog)
    os.kill(guardian, signal.SIGSTOP)
    os.waitid(os.P_PID, guardian, os.WSTOPPED | os.WNOWAIT)
    try:
        yield
    finally:
        os.kill(guardian, signal.SIGCONT)


def guardian_of(watchdog: Watchdog) -> int:
    assert watchdog._process is not None
    return watchdog._process.pid


def test_a_process_dies_at_its_deadline(watchdog: Watchdog, sleeper: Process) -> None:
    watchdog.live_until(sleeper.pid, time.monotonic() + 0.1)
    assert sleeper.wait(60) == -signal.SIGKILL


@pytest.mark.slow
def test_a_later_deadline_replaces_an_earlier_one(watchdog: Watchdog, sleeper: Process) -> None:
    with frozen(watchdog):
        watchdog.live_until(sleeper.pid, time.monotonic() + 0.5)
        began = time.monotonic()
        watchdog.live_until(sleeper.pid, began + 1.5)
    sleeper.wait(60)
    assert time.monotonic() - began >= 1.5


def test_a_process_that_is_forgotten_is_left_alone(
    watchdog: Watchdog, sleeper: Process, other: Process
) -> None:
    with frozen(watchdog):
        watchdog.live_until(sleeper.pid, time.monotonic() + 0.3)
        watchdog.forget(sleeper.pid)
        watchdog.live_until(other.pid, time.monotonic() + 0.4)
    assert other.wait(60) == -signal.SIGKILL  # The other's deadline was before that.
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
    other.wait(60)  # From here on it waits for the deadline.
    with frozen(watchdog):
        rest = deadline - time.monotonic()
        wait_until(lambda: time.monotonic() > deadline)
        assert sleeper.poll() is None
    assert sleeper.wait(rest * 0.9) == -signal.SIGKILL  # The rest of its wait was longer.


def test_processes_die_with_the_watchdog(sleeper: Process) -> None:
    watchdog = Watchdog()
    watchdog.live_until(sleeper.pid, time.monotonic() + 600)
    watchdog.close()
    assert sleeper.wait(60) == -signal.SIGKILL


def test_a_guardian_that_is_killed_is_replaced(watchdog: Watchdog, sleeper: Process) -> None:
    watchdog.live_until(sleeper.pid, time.monotonic() + 600)
    first = guardian_of(watchdog)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    watchdog.live_until(sleeper.pid, time.monotonic() + 0.1)
    assert guardian_of(watchdog) != first
    assert sleeper.wait(60) == -signal.SIGKILL


def test_a_guardian_that_ends_while_nothing_is_said_is_replaced(
    watchdog: Watchdog, sleeper: Process
) -> None:
    watchdog.live_until(sleeper.pid, time.monotonic() + 600)
    first = guardian_of(watchdog)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    watchdog.ensure(time.monotonic())
    assert guardian_of(watchdog) != first
    watchdog.close()
    assert sleeper.wait(60) == -signal.SIGKILL, "the second knows of it"


def test_while_no_guardian_can_be_started_there_is_none(
    watchdog: Watchdog, sleeper: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Process:
        raise OSError(errno.EMFILE, "Too many open files")

    first = guardian_of(watchdog)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    now = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(watchdog, "_started", refuse)
        watchdog.live_until(sleeper.pid, now + 600)
        watchdog.ensure(now)
        watchdog.live_until(sleeper.pid, now + 0.1)
        assert not watchdog.is_there
    watchdog.ensure(now + 0.5)
    assert not watchdog.is_there, "it is not tried all the time"
    watchdog.ensure(now + 2)
    assert watchdog.is_there
    assert sleeper.wait(60) == -signal.SIGKILL


@pytest.mark.slow
def test_a_guardian_that_was_frozen_heeds_what_it_was_told_meanwhile(
    watchdog: Watchdog, sleeper: Process, other: Process
) -> None:
    near = time.monotonic() + 4
    watchdog.live_until(sleeper.pid, near)
    watchdog.live_until(other.pid, time.monotonic() + 0.1)
    other.wait(60)  # From here on it waits for the deadline.
    with frozen(watchdog):
        watchdog.live_until(sleeper.pid, time.monotonic() + 600)
        wait_until(lambda: time.monotonic() > near)
    with pytest.raises(subprocess.TimeoutExpired):
        sleeper.wait(1)


@pytest.mark.slow
def test_a_frozen_guardian_keeps_nobody_from_ending() -> None:
    watchdog = Watchdog()
    guardian = guardian_of(watchdog)
    os.kill(guardian, signal.SIGSTOP)
    watchdog.close()
    with pytest.raises(ProcessLookupError):
        os.kill(guardian, 0)
