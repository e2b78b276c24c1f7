"""Texts of tasks and people stand in the worker's log as one line each."""

from __future__ import annotations

import logging
import re
import subprocess
import sys

import pytest

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.worker.leases import log_outcome
from tests.worker.test_meter import job

# A process that shows its logs as a worker does, with DEBUG on and this LOGGING.
SHOWN = """
import logging, sys
import django
from django.conf import settings
apps = ["django.contrib.contenttypes", "django.contrib.auth", "taskqueue"]
settings.configure(DEBUG=True, LOGGING=eval(sys.argv[1]), INSTALLED_APPS=apps, USE_TZ=True)
django.setup()
from taskqueue.worker.logs import show_logs
show_logs()
logging.getLogger("taskqueue.worker").info("Worker started")
logging.getLogger("django.tasks").error("Task failed")
"""
FORGED = "line1\n2026-11-22 00:00:00,000 INFO Worker stopped name=forged\x1b[2J\r\u2028end\n"


def test_an_error_of_a_body_is_logged_without_control_characters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcome = Outcome(
        1, OutcomeKind.FAILED, 0.0, error_class="shop.Odd\nError", error_message=FORGED
    )
    with caplog.at_level(logging.WARNING, "taskqueue"):
        log_outcome(job(), outcome, "failed")
    [record] = caplog.records
    told = record.getMessage()
    assert told.isprintable()
    assert r"error=shop.Odd\nError: line1\n2026-11-22" in told
    assert told.endswith(r"name=forged\x1b[2J\r\u2028end")


def test_ordinary_text_of_any_language_is_logged_unchanged() -> None:
    assert one_line(" två 日本 \\n ") == "två 日本 \\n"
    assert one_line("\udc80\x00") == r"\udc80\x00"
    assert one_line(ValueError("no")) == "no"


def shown(logging_setting: str) -> list[str]:
    """The lines on standard error under that LOGGING, each with its time as `T`."""
    command = [sys.executable, "-c", SHOWN, logging_setting]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [re.sub(r"^[\d-]+ [\d:,]+ ", "T ", line) for line in ended.stderr.splitlines()]


def test_with_debug_failures_are_printed_once_with_time_and_level() -> None:
    assert shown("{}") == ["T INFO Worker started", "T ERROR Task failed"]


def test_a_logging_of_the_project_keeps_its_format() -> None:
    own = "{'version': 1, 'disable_existing_loggers': False}"
    assert shown(own) == ["T INFO Worker started", "Task failed"]
