"""What tasks and people write stands in the worker's log as one line each."""

from __future__ import annotations

import logging

import pytest

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.worker.leases import log_outcome
from tests.worker.test_meter import job

FORGED = "line1\n2026-11-22 00:00:00,000 INFO Worker stopped name=forged\x1b[2J\r\u2028end\n"


def test_what_a_body_raises_can_neither_forge_a_line_nor_steer_a_terminal(
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


def test_ordinary_text_of_any_language_stays_as_it_is() -> None:
    assert one_line(" två 日本 \\n ") == "två 日本 \\n"
    assert one_line("\udc80\x00") == r"\udc80\x00"
    assert one_line(ValueError("no")) == "no"
