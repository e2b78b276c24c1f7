"""A child process writes the declarations to the database, as soon as that can be reached."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db import OperationalError

from taskqueue.worker import frames
from taskqueue.worker.bodies import declaring
from taskqueue.worker.bodies.declaring import LOG_INTERVAL, LONGEST_PAUSE, declare

TRIES = 30


def test_a_database_that_is_away_is_tried_after_growing_pauses_and_logged_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []
    sent: list[Any] = []

    def sync_limits() -> None:
        if len(pauses) < TRIES:
            raise OperationalError("connection failed")

    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append)
    monkeypatch.setattr(declaring, "time", clock)
    monkeypatch.setattr(declaring, "sync_limits", sync_limits)
    monkeypatch.setattr(declaring, "sync_handlers", lambda: None)
    monkeypatch.setattr(declaring, "sync_rules", list)
    nothing = SimpleNamespace(refused=[], removed=[])
    monkeypatch.setattr(declaring, "sync_schedules", lambda worker: nothing)
    monkeypatch.setattr(declaring, "_close", lambda: None)
    declare(cast(Any, SimpleNamespace(send=sent.append)), worker_name="w1")
    assert sent == [(frames.SYNCED,)]
    assert len(pauses) == TRIES
    assert all(LONGEST_PAUSE <= pause <= 1.5 * LONGEST_PAUSE for pause in pauses[-5:])
    assert len(set(pauses[-5:])) > 1
    lines = caplog.text.count("Declarations not synchronised yet error=connection failed")
    assert 2 <= lines <= sum(pauses) / LOG_INTERVAL + 1
