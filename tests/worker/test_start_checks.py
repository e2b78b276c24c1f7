"""The system checks of a worker's start, which a process of their own runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from taskqueue.management.checking import LENGTH_BYTES, answer_of

STARTED = """
import os, sys, time
import django
from django.conf import settings
from django.core import checks
from django.core.management import execute_from_command_line

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "taskqueue"],
    USE_TZ=True,
)

@checks.register
def own(app_configs, **kwargs):
    if sys.argv[2] == "raises":
        raise RuntimeError(f"raised by {os.getpid()}")
    if sys.argv[2] == "dies" and os.getpid() != worker:
        os.kill(os.getpid(), 9)
    if sys.argv[2] == "forks":
        forked = os.fork()
        if not forked:
            os.closerange(0, 3)
            time.sleep(60)
            os._exit(0)
        print("forked", forked, flush=True)
    print("printed by a check")
    kind = getattr(checks, sys.argv[2], checks.Warning)
    return [kind(f"told by {os.getpid()}")]

worker = os.getpid()
print("worker", worker, flush=True)
execute_from_command_line(["manage.py", "runworker", "--drain"])
"""


def _start(kind: str) -> tuple[str, int, bool]:
    """Return the output of a worker, the pid that a check tells, and whether it is the worker's."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED, "runworker", kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    told = re.search(r"(?:told|raised) by (\d+)", done.stdout)
    worker = re.search(r"worker (\d+)", done.stdout)
    assert told is not None, done.stdout
    assert worker is not None, done.stdout
    return done.stdout, done.returncode, told[1] == worker[1]


def test_a_warning_is_shown_and_the_worker_goes_on() -> None:
    text, code, by_worker = _start("Warning")
    assert "WARNINGS:" in text
    assert "printed by a check" in text
    assert "Migrations are not applied" in text
    assert (code, by_worker) == (1, sys.platform != "linux")


def test_an_error_ends_the_worker_before_it_asks_the_database() -> None:
    text, code, by_worker = _start("Error")
    assert "SystemCheckError: System check identified some issues:" in text
    assert "Migrations are not applied" not in text
    assert (code, by_worker) == (1, sys.platform != "linux")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the worker runs all checks")
def test_an_error_of_a_system_check_is_raised_by_the_worker() -> None:
    text, code, by_worker = _start("raises")
    assert "RuntimeError: raised by" in text
    assert (code, by_worker) == (1, True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the worker runs all checks")
def test_a_process_that_a_check_leaves_behind_does_not_hold_up_the_worker() -> None:
    text, _, by_worker = _start("forks")
    forked = re.search(r"forked (\d+)", text)
    assert forked is not None, text
    os.kill(int(forked[1]), signal.SIGKILL)  # It is still there.
    assert "WARNINGS:" in text
    assert not by_worker


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the worker runs all checks")
def test_the_worker_runs_the_checks_if_the_copy_is_killed() -> None:
    text, _, by_worker = _start("dies")
    assert "WARNINGS:" in text
    assert by_worker


def test_a_short_or_broken_answer_is_none() -> None:
    text = b'["warnings", null]'
    whole = len(text).to_bytes(LENGTH_BYTES) + text
    assert answer_of(whole) == ("warnings", None)
    for size in range(len(whole)):
        assert answer_of(whole[:size]) is None
    broken = (b"[1", b"1", b'["a"]', b"\xff", b"")
    assert [answer_of(len(each).to_bytes(LENGTH_BYTES) + each) for each in broken] == [None] * 5
