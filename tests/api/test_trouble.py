"""What the database could not do at that moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from taskqueue.api.queues import ACTS
from taskqueue.models import Queue
from tests.api.conftest import ApiClient
from tests.api.test_foundation import PAUSE, problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]
DEADLOCK = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'deadlock_detected'; END $$"


def breaks(monkeypatch: pytest.MonkeyPatch, *, times: int) -> list[str]:
    """Let so many pauses end as PostgreSQL ends one of two that wait for each other."""
    begun: list[str] = []
    pausing = ACTS["pause"].verb

    def breaking(name: str, **given: Any) -> None:
        begun.append(name)
        pausing.act(name, **given)
        if len(begun) <= times:
            with connection.cursor() as cursor:
                cursor.execute(DEADLOCK)

    monkeypatch.setattr(ACTS["pause"], "verb", replace(pausing, function=breaking))
    return begun


def test_a_request_that_lost_a_deadlock_is_tried_again(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = breaks(monkeypatch, times=2)
    answer = root.act(PAUSE, {"until": 60}, idempotency_key="one")
    assert (answer.status_code, len(begun)) == (200, 3)
    assert Queue.objects.filter(paused_at__isnull=False).count() == 1


def test_after_some_tries_the_client_is_told_to_come_again(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch, times=9)
    answer = root.act(PAUSE, {"until": 60}, idempotency_key="one")
    problem(answer, 503, "database_busy")
    assert answer["Retry-After"] == "1"
    assert not Queue.objects.filter(paused_at__isnull=False).exists()
