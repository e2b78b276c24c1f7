"""`manage.py taskqueue top`: frames that fit, keys that are heard, a database that goes away."""

from __future__ import annotations

import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from django.utils import timezone

from taskqueue import control
from taskqueue.management.cli.cells import aligned, bars, filled, fitted, width
from taskqueue.management.cli.top.frame import frame, shared
from taskqueue.management.cli.top.live import ENTER, LEAVE, Reader, Seen, lines_of
from taskqueue.models import Rollup
from taskqueue.monitoring.overview import overview
from tests.engine.lost_workers import held_by_lost
from tests.engine.steps import HOUR
from tests.management.test_taskqueue import exit_code, run, run_json
from tests.monitoring.rows import (
    MINUTE,
    ago,
    make_rollup,
    make_running,
    make_task,
    make_worker,
    within_a_minute,
)
from tests.worker_process import ROOT, end_other_sessions, wait_until, worker_environment

T = TypeVar("T")
EVIL = "\x1b[2Jgone\u202e\n\x07"


def fill() -> None:
    """Something of everything."""
    make_worker("w1", trouble="", memory_bytes=50 * 1024 * 1024)
    make_worker("w2", queues={"mail": 1}, trouble=EVIL)
    make_worker("w3", status="lost", seen_at=ago(HOUR * 48))
    for _ in range(3):
        make_task(queue_name="mail", run_after=ago(HOUR))
    make_task("failed")
    control.pause("mail", by="anna")
    task = make_task("running", name="shop.tasks.发送", attempt=2)
    make_running("w1", task=task, progress=42, progress_message=f"row 4{EVIL}")
    make_rollup(ago(MINUTE), succeeded=5, failed=1, run=[0.2], wait=[0.2])


def of_the_last_minute(look: Callable[[], T]) -> T:
    """What is seen where the rollup stands in the last minute that is over."""

    def seen() -> T:
        Rollup.objects.update(starts_at=ago(MINUTE))
        return look()

    return within_a_minute(seen)


def text_of(**options: Any) -> str:
    """A frame as one text."""
    return "\n".join(line.text for line in frame(overview(), **{"columns": 120, **options}))


# Cells


def test_cells_are_as_wide_as_the_terminal_shows_them() -> None:
    assert (width("abc"), width("发送"), width("e\u0301")) == (3, 4, 1)
    assert [fitted("abcdef", columns) for columns in (6, 4, 1, 0)] == ["abcdef", "abc…", "…", ""]
    assert fitted("发送邮件", 5) == "发送…"
    assert filled("发", 4) == "发  "
    assert aligned([["a\x1b[2J\u202eb"]]) == ["a\ufffd[2J\ufffdb"]
    assert aligned([["a\n b"]]) == ["a b"]


def test_where_all_is_too_wide_the_first_column_gives_way_then_the_last() -> None:
    rows = [("name", "n", "note"), ("a" * 30, "7", "b" * 30)]
    assert aligned(rows, columns=80)[1] == f"{'a' * 30}  7  {'b' * 30}"
    narrow = aligned(rows, columns=40)
    assert narrow[1] == f"{'a' * 24}…  7  {'b' * 9}…"
    assert max(map(width, aligned(rows, columns=10))) <= 10


def test_bars_are_as_high_as_their_figures() -> None:
    assert (bars([0, 1, 7]), bars([0, 0]), bars([])) == ("▁▂█", "▁▁", "")


def test_rows_are_shared_out_and_what_one_does_not_need_is_left_to_others() -> None:
    assert shared([10, 1, 10], 9) == [4, 1, 4]
    assert shared([2, 1, 1], 100) == [2, 1, 1]
    assert shared([5, 5, 5], 0) == [0, 0, 0]


# Frames


@pytest.mark.django_db
def test_a_frame_shows_counts_queues_workers_and_what_runs() -> None:
    fill()
    before = timezone.now()
    text = of_the_last_minute(lambda: text_of(title="here  "))
    days = {f"here  {moment:%Y-%m-%d}" for moment in (before, timezone.now())}
    assert text.startswith(tuple(days))
    for part in (
        "ready 3", "failed 1", "! The queue mail is paused", "paused by anna", "60 min", "w1",
        "50 MB", "shop.tasks.发送", "####...... 42%", "1 failed", "!! The worker w2 is in trouble",
    ):  # fmt: skip
        assert part in text, part
    assert "w3" not in text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("columns", "rows"), [(200, 60), (80, 24), (40, 12), (20, 6), (10, 3), (1, 1)]
)
def test_a_frame_fits_a_terminal_of_any_size_and_steers_none(columns: int, rows: int) -> None:
    fill()
    for number in range(30):
        make_task(queue_name=f"queue-{number}")
    for trouble in ("", "No answer, trying again: it is away"):
        lines = lines_of(Seen(overview(), trouble), columns=columns, rows=rows, title="here  ")
        assert 1 <= len(lines) <= rows
        assert all(width(line.text) <= columns for line in lines)
        assert all(line.text.isprintable() for line in lines)


@pytest.mark.django_db
def test_notices_of_lost_workers_come_before_others_and_what_is_left_out_is_counted() -> None:
    for number in range(5):
        make_task(queue_name=f"queue-{number}")
        make_worker(f"w{number}", trouble="out of memory", queues={"mail": 1})
    result, _ = held_by_lost(worker="gone")
    shown = [line for line in text_of().splitlines() if line.startswith("!")]
    assert len(shown) == 4
    assert shown[0].startswith(
        f"!! Tasks that lost workers hold until their leases expire: 1. {result.id}"
    )
    number = len(overview().notices) - 3
    assert shown[3] == f"! and {number} more: see `taskqueue doctor`"


@pytest.mark.django_db
def test_lines_without_room_are_counted() -> None:
    for number in range(30):
        make_task(queue_name=f"queue-{number:02}")
    lines = text_of(rows=20).splitlines()
    assert len(lines) == 20
    assert any(line.startswith("… 2") and line.endswith(" more") for line in lines)


# The command


@pytest.mark.django_db
def test_once_prints_one_frame_or_one_document() -> None:
    fill()
    assert "shop.tasks.发送" in run("top", "--once")
    assert "shop.tasks.发送" in run("top")  # What goes to no terminal is printed once.
    told: Any = of_the_last_minute(lambda: run_json("top", "--once"))
    assert (told["tasks"]["ready"], told["per_minute"], told["failed_per_minute"]) == (3, 6, 1)
    assert {queue["name"] for queue in told["queues"]} == {"default", "mail"}
    assert [task["progress"] for task in told["running"]] == [42.0]
    assert [worker["name"] for worker in told["workers"]] == ["w1", "w2", "w3"]


@pytest.mark.parametrize("interval", ["0", "soon", "nan", "1e9"])
def test_an_interval_that_is_none_exits_with_2(
    interval: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["top", "--interval", interval]) == 2


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_database_that_goes_away_is_told_of_and_asked_again() -> None:
    make_worker()
    troubles: list[str] = []

    def note() -> None:
        troubles.append(reader.seen.trouble)

    with Reader(interval=0.02, on_read=note) as reader:
        wait_until(lambda: troubles)
        end_other_sessions()
        wait_until(lambda: any(each.startswith("No answer, trying again: ") for each in troubles))
        wait_until(lambda: troubles[-1] == "")
        assert reader.seen.overview is not None


# In a terminal

# The process gets the terminal as its own, so that Ctrl-C reaches it.
START = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("django", run_name="__main__", alter_sys=True)
"""


class Terminal:
    """A pseudo-terminal in which `top` runs."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = os.openpty()
        self.resize(80, 24)
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "taskqueue", "top", *arguments],
            cwd=ROOT,
            env=worker_environment({}),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.text = ""

    def resize(self, columns: int, rows: int) -> None:
        """As a window manager does."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        """As a person does."""
        os.write(self._master, keys)

    def read_until(self, wanted: str, timeout: float = 60) -> None:
        """Read until it has written this."""
        deadline = time.monotonic() + timeout
        while wanted not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self._master], [], [], 0.1)[0]:
                self.text += os.read(self._master, 65536).decode(errors="replace")

    def close(self) -> None:
        """Whatever happens, nothing is left behind."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(transactional_db: None) -> Iterator[Terminal]:
    make_task(queue_name=f"mail-{uuid4().hex[:8]}")
    made = Terminal("--interval", "0.2")
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_in_a_terminal_it_draws_follows_its_size_and_leaves_it_as_it_was(
    terminal: Terminal, key: bytes
) -> None:
    terminal.read_until("queue  ")
    assert terminal.text.startswith(ENTER)
    terminal.text = ""
    terminal.resize(30, 4)
    terminal.read_until("…")  # Lines are cut now that fitted before.
    terminal.press(key)
    terminal.read_until(LEAVE)
    assert terminal.process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_documents_follow_each_other_a_line_each_until_nobody_reads() -> None:
    make_task()
    process = subprocess.Popen(
        [
            sys.executable, "-m", "django", "taskqueue", "top", "--format", "json",
            "--interval", "0.2",
        ],
        cwd=ROOT, env=worker_environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        for _ in range(2):
            assert json.loads(process.stdout.readline())["tasks"]["ready"] == 1
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
