"""A copy of the child meets no lock that another of the child's threads held at the fork."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskqueue.worker import connections
from taskqueue.worker.bodies.reporting import Channel
from tests.sharing_out import IS_FULL

FORKS = 200 if IS_FULL else 80
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:This process")]


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Hooks that would stay registered in this process; only the tests' own forks call them."""
    registered: list[dict[str, Any]] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **given: registered.append(given))
    return registered


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    """Stands for the child's way to its parent."""
    with socket.socket() as sock:
        yield sock


def fork_often(hooks: list[dict[str, Any]], copy: Callable[[], object]) -> int:
    """Fork beside what runs; return how many of the copies hung."""
    hung = 0
    for _ in range(FORKS):
        for hook in reversed(hooks):
            hook.get("before", int)()
        pid = os.fork()
        if not pid:
            for hook in hooks:
                hook.get("after_in_child", int)()
            copy()
            os._exit(0)
        for hook in hooks:
            hook.get("after_in_parent", int)()
        hung += not ends(pid)
        if hung:
            break
    return hung


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return False
        time.sleep(0.0005)
    return True


@pytest.fixture
def beside() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Do something over and over in a thread, while the test lasts."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def start(do: Callable[[], object]) -> None:
        def spin() -> None:
            while not over.is_set():
                do()

        threads.append(threading.Thread(target=spin))
        threads[-1].start()

    yield start
    over.set()
    for thread in threads:
        thread.join()


def ask(path: Path) -> None:
    connection = sqlite3.connect(path)
    for number in range(5):
        connection.execute("SELECT count(*) FROM noted WHERE number = ?", (number,)).fetchall()
    connection.close()


def test_a_copy_opens_a_session_whatever_the_child_asks_meanwhile(
    tmp_path: Path,
    sock: socket.socket,
    hooks: list[dict[str, Any]],
    beside: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine the thread beside may be off the processor in the midst of it.
    monkeypatch.setattr(connections, "LONGEST_HOLD", 60)
    path = tmp_path / "noted.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE noted (number integer)")
    connection.close()

    def ask_unforked() -> None:
        with connections.unforked():
            ask(path)
        time.sleep(0)  # Let a fork in between.

    connections.keep_from_copies(sock)
    beside(ask_unforked)
    assert fork_often(hooks, lambda: ask(path)) == 0


def test_a_fork_waits_for_a_moment_only(
    sock: socket.socket, hooks: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LONGEST_HOLD", 0.05)
    connections.keep_from_copies(sock)
    entered, over = threading.Event(), threading.Event()

    def stay() -> None:
        with connections.unforked():
            entered.set()
            over.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    assert entered.wait(60)
    monkeypatch.setattr("tests.worker.test_fork_locks.FORKS", 2)
    try:
        assert fork_often(hooks, lambda: None) == 0
    finally:
        over.set()
        thread.join()


def test_a_copy_logs_whatever_the_child_reports_meanwhile(
    sock: socket.socket,
    hooks: list[dict[str, Any]],
    beside: Callable[[Callable[[], object]], None],
) -> None:
    channel = Channel(sock, max_log=1 << 40)

    def report() -> None:
        for _ in range(100):
            channel.report_line(1, 20, "project", "a line")
            channel.take()

    beside(report)
    assert fork_often(hooks, lambda: channel.report_line(1, 20, "project", "in a copy")) == 0
