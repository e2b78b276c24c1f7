"""Outcomes in batches, refused ones singled out; notes and lines of what still runs."""

from __future__ import annotations

import pytest
from django.db import connection

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.record import record, record_each, write_logs, write_notes
from taskqueue.engine.rows import LogLine, Note
from taskqueue.engine.tally import Tally
from taskqueue.models import Lease, TaskLog
from tests.engine.steps import (
    another_connection,
    claim,
    claim_one,
    end,
    lease_of,
    outcome,
    policy,
    task_of,
    task_statuses,
)
from tests.engine.test_apart import take
from tests.sample.tasks import echo, noop

pytestmark = pytest.mark.django_db


def test_a_batch_records_allowed_outcomes_and_skips_the_rest() -> None:
    echo.enqueue_many([((n,), {}) for n in range(6)])
    claimed = claim()
    end(claimed[0], OutcomeKind.LOST)
    batch = [
        outcome(claimed[0], OutcomeKind.SUCCEEDED, return_value="0"),
        outcome(claimed[1], OutcomeKind.SUCCEEDED, return_value="1"),
        outcome(claimed[2], OutcomeKind.FAILED, error_class="E"),
        outcome(claimed[3], OutcomeKind.SNOOZED, delay=5.0),
        outcome(claimed[4], OutcomeKind.UNSTARTED),
        outcome(claimed[5], OutcomeKind.SUCCEEDED),
        Outcome(10**12, OutcomeKind.SUCCEEDED, 0.0),
    ]
    recorded = record(connection, batch[::-1], policy=policy())
    assert task_statuses(recorded) == {
        claimed[1].lease_id: "succeeded",
        claimed[2].lease_id: "failed",
        claimed[3].lease_id: "scheduled",
        claimed[4].lease_id: "ready",
        claimed[5].lease_id: "succeeded",
    }
    assert [task_of(each).return_value for each in claimed] == [None, 1, None, None, None, None]


def test_an_outcome_that_is_sent_again_changes_nothing() -> None:
    noop.enqueue()
    claimed = claim_one()
    sent = outcome(claimed, OutcomeKind.SUCCEEDED, return_value="1")
    twice = record(connection, [sent, sent], policy=policy())
    assert task_statuses(twice) == {claimed.lease_id: "succeeded"}
    assert record(connection, [sent], policy=policy()) == {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("bad", [0, 3, 6])
def test_an_outcome_that_the_database_refuses_fails_alone(
    bad: int, caplog: pytest.LogCaptureFixture
) -> None:
    echo.enqueue_many([((n,), {}) for n in range(7)])
    claimed = claim()
    batch = [outcome(each, OutcomeKind.SUCCEEDED, return_value="1") for each in claimed]
    batch[bad] = batch[bad]._replace(return_value="{no json")
    with another_connection() as own:
        recorded = record_each(own, batch, policy=policy(), tally=Tally())
    statuses = [recorded[each.lease_id].task_status for each in claimed]
    assert statuses == ["failed" if n == bad else "succeeded" for n in range(7)]
    refused = task_of(claimed[bad])
    assert refused.error_class == "taskqueue.exceptions.InvalidArguments"
    assert "The database refused the outcome" in refused.error_message
    assert lease_of(claimed[bad]).status == "failed"
    assert "Outcome refused by the database" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_two_refused_outcomes_fail_and_the_others_are_recorded() -> None:
    echo.enqueue_many([((n,), {}) for n in range(5)])
    claimed = claim()
    texts = ["1", "{", "1", "]", "1"]
    batch = [
        outcome(each, OutcomeKind.SUCCEEDED, return_value=text)
        for each, text in zip(claimed, texts, strict=True)
    ]
    with another_connection() as own:
        recorded = record_each(own, batch, policy=policy(), tally=Tally())
    assert [recorded[each.lease_id].task_status for each in claimed] == [
        "succeeded", "failed", "succeeded", "failed", "succeeded",
    ]  # fmt: skip


def test_notes_keep_the_start_and_the_last_progress() -> None:
    result = noop.enqueue()
    claimed = claim_one()
    write_notes(connection, [Note(claimed.lease_id, 5.0, None, None)])
    started_at = lease_of(claimed).started_at
    assert task_of(result).started_at == started_at
    write_notes(connection, [Note(claimed.lease_id, None, 25.0, "a quarter")])
    write_notes(connection, [Note(claimed.lease_id, 1.0, 50.0, None)])
    lease = lease_of(claimed)
    assert (lease.started_at, lease.progress) == (started_at, 50.0)
    assert lease.progress_message == "a quarter"
    assert result.progress == (50.0, "a quarter")
    assert result.progress.detail is None
    write_notes(connection, [Note(claimed.lease_id, None, 60.0, "", '{"row":"7"}')])
    write_notes(connection, [Note(claimed.lease_id, 1.0, None, None)])
    assert result.progress == (60.0, "")
    assert result.progress.detail == {"row": "7"}
    write_notes(connection, [Note(claimed.lease_id, None, 70.0, "on")])
    assert result.progress.detail is None
    assert end(claimed, OutcomeKind.SUCCEEDED) == "succeeded"
    assert lease_of(claimed).started_at == task_of(result).started_at == started_at


def test_log_lines_stand_in_the_order_they_were_said() -> None:
    noop.enqueue()
    claimed = claim_one()
    lines = [LogLine(claimed.lease_id, 3.0 - n, 20 + n, "shop", f"line {n}") for n in range(3)]
    write_logs(connection, lines)
    stored = list(TaskLog.objects.order_by("id"))
    assert [(line.level, line.logger, line.message) for line in stored] == [
        (20 + n, "shop", f"line {n}") for n in range(3)
    ]
    assert stored[0].logged_at < stored[1].logged_at < stored[2].logged_at
    assert {line.attempt for line in stored} == {1}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", [OutcomeKind.PARKED, OutcomeKind.UNSTARTED])
def test_a_noted_start_is_undone_where_the_body_never_began(
    kind: OutcomeKind, workers: int
) -> None:
    """A note takes an order that a child was sent for a body that runs."""
    result = noop.using(workers=workers).enqueue()
    [claimed] = claim(1) if workers == 1 else take("w1")
    write_notes(connection, [Note(claimed.lease_id, 0.2, None, None)])
    end(claimed, kind, started=None)
    assert task_of(result).started_at is None
    assert not Lease.objects.exclude(started_at=None).exists()
