"""Reasons that the engine wrote are translated; reasons that people wrote are not changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from taskqueue import reason_words as module
from taskqueue.core.states import Missed
from taskqueue.engine.schedules.advancing import decide, resting_reason
from taskqueue.engine.schedules.syncing import CODE
from taskqueue.engine.schedules.times import Time
from taskqueue.models import Schedule
from taskqueue.reason_words import DETAILS, TEMPLATES, detail_words, reason_words

NOW = timezone.now()


@pytest.fixture(autouse=True)
def translated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language in which every text is in brackets."""
    monkeypatch.setattr(module, "gettext", lambda text: f"[{text}]")


def test_a_template_gives_the_text_that_it_was_made_from() -> None:
    for template in TEMPLATES:
        gaps = {
            "number": "3", "who": "ann", "reason": "why", "time": "now", "seconds": "2",
            "status": "500", "error": "refused", "moment": "2026-11-01 09:00:00", "task": "x",
            "end": "exit 1", "call": "shop.tasks.send",
        }  # fmt: skip
        text = template.format(**gaps)
        assert reason_words(text) == f"[{text}]"


def test_a_detail_of_an_audit_entry_gives_the_text_that_it_was_made_from() -> None:
    gaps = {"number": "3", "time": "2026-11-01T09:00", "id": str(uuid4()), "verb": "odd"}
    for template in DETAILS:
        text = template.format(**gaps)
        assert detail_words(text) == f"[{text}]"


@pytest.mark.parametrize("text", ["", "to fix it now", "priority: 0 to 5", "queue_name, rule"])
def test_other_details_of_audit_entries_stay_as_they_are(text: str) -> None:
    assert detail_words(text) == text


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"removed_at": NOW}, "[No code declares the schedule any more.]"),
        ({"is_enabled": False}, "[The schedule is not enabled.]"),
        ({"paused_at": NOW}, "[Paused.]"),
        ({"paused_at": NOW, "paused_by": "ann"}, "[Paused by ann.]"),
        ({"paused_at": NOW, "paused_by": "ann", "pause_reason": "a: b."}, "[Paused by ann: a: b.]"),
        (
            {"paused_at": NOW, "pause_reason": "3 runs failed in a row."},
            "[Paused: [3 runs failed in a row.]]",
        ),
    ],
)
def test_reasons_of_resting_schedules_are_translated(fields: dict[str, Any], told: str) -> None:
    assert reason_words(resting_reason(Schedule(**fields))) == told


@pytest.mark.parametrize("missed", list(Missed))
def test_reasons_of_missed_times_are_translated(missed: Missed) -> None:
    moments = [NOW - timedelta(hours=hours) for hours in (3, 2, 1)]
    times = [Time(moment, moment) for moment in moments]
    window = timedelta(minutes=90) if missed == Missed.WINDOW else None
    schedule = Schedule(missed=missed, missed_window=window)
    reasons = list(decide(schedule, times, NOW).values())
    assert all(reason_words(reason).startswith("[") for reason in reasons if reason)


def test_reasons_written_by_people_are_shown_unchanged() -> None:
    assert reason_words(CODE.reason) == "[declared in code]"
    for reason in ("", "a deploy", "declared in code by me", "{time} {0}", "Paused", "%s"):
        assert reason_words(reason) == reason
