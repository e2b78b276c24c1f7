"""The system checks of a worker's start, which a process of their own runs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

STARTED = """
import os, sys
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
    print("printed by a check")
    return [getattr(checks, sys.argv[2])(f"told by {os.getpid()}")]

print("worker", os.getpid(), flush=True)
execute_from_command_line(["manage.py", "runworker", "--drain"])
"""


def _start(kind: str) -> tuple[str, int, bool]:
    """What a worker says, the pid that a check tells, and whether that is the worker's."""
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
def test_what_a_check_raises_is_raised_by_the_worker() -> None:
    text, code, by_worker = _start("raises")
    assert "RuntimeError: raised by" in text
    assert (code, by_worker) == (1, True)
