"""An attempt that runs far longer than similar ones without a sign of life is marked."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import wedged
from taskqueue.engine.record import write_logs, write_notes
from taskqueue.engine.rows import Claimed, LogLine, Note
from taskqueue.models import Lease, Task
from tests.engine.steps import claim, claim_one, end, lease_of, past
from tests.sample.tasks import echo, noop

pytestmark = pytest.mark.django_db
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def succeed(*durations: float) -> None:
    """Let `noop` have taken so many seconds, once each."""
    noop.enqueue_many([((), {})] * len(durations))
    moment = past(HOUR)
    for claimed, seconds in zip(claim(len(durations)), durations, strict=True):
        end(claimed, OutcomeKind.SUCCEEDED)
        Lease.objects.filter(id=claimed.lease_id).update(
            started_at=moment, finished_at=moment + timedelta(seconds=seconds)
        )


def run(*, since: timedelta) -> Claimed:
    """An attempt of `noop` that has been running for so long."""
    noop.enqueue()
    claimed = claim_one()
    Lease.objects.filter(id=claimed.lease_id).update(started_at=past(since))
    return claimed


def mark(**thresholds: Any) -> int:
    return wedged.mark_wedged(connection, **thresholds)


def is_marked(claimed: Claimed) -> bool:
    return lease_of(claimed).wedged_at is not None


def test_a_quiet_attempt_of_a_name_that_is_usually_short_is_marked_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    succeed(*[1.0] * 20)
    began = time.monotonic()
    claimed = run(since=11 * MINUTE)
    assert [mark(), mark()] == [1, 0]
    passed = time.monotonic() - began
    assert [lease.id for lease in wedged.wedged()] == [claimed.lease_id]
    assert next(iter(wedged.wedged())).task.name == noop.name
    [said] = [record.getMessage() for record in caplog.records]
    assert f"task={noop.name} id={claimed.task_id} attempt=1 worker=w1" in said
    quiet = re.search(r" quiet_seconds=(\d+) usual_seconds=1\.000$", said)
    assert quiet
    assert 660 <= int(quiet[1]) <= 660 + passed + 1


def test_an_attempt_is_given_ten_minutes_however_short_its_like_are() -> None:
    succeed(*[0.01] * 20)
    claimed = run(since=9 * MINUTE)
    assert mark() == 0
    assert mark(least=8 * MINUTE) == 1
    assert is_marked(claimed)


@pytest.mark.parametrize(("since", "expected"), [(19 * MINUTE, 0), (21 * MINUTE, 1)])
def test_an_attempt_is_given_ten_times_what_95_of_100_take(since: timedelta, expected: int) -> None:
    succeed(*[1.0] * 80, *[120.0] * 15, *[9000.0] * 5)
    run(since=since)
    assert mark() == expected


def test_the_factor_may_be_another() -> None:
    succeed(*[120.0] * 20)
    run(since=19 * MINUTE)
    assert [mark(), mark(factor=9)] == [0, 1]


def test_a_name_that_little_is_known_of_is_left_alone() -> None:
    succeed(*[1.0] * 19)
    run(since=HOUR)
    assert mark() == 0
    assert mark(enough=19) == 1


def test_another_names_attempts_tell_nothing() -> None:
    succeed(*[1.0] * 20)
    echo.enqueue(1)
    claimed = claim_one()
    Lease.objects.filter(id=claimed.lease_id).update(started_at=past(HOUR))
    assert mark() == 0


def test_failures_tell_nothing() -> None:
    noop.enqueue_many([((), {})] * 20)
    for claimed in claim(20):
        end(claimed, OutcomeKind.FAILED)
    run(since=HOUR)
    assert mark() == 0


def test_only_the_newest_attempts_are_looked_at() -> None:
    succeed(*[1.0] * 20)
    claimed = run(since=HOUR)
    assert [mark(sample=20), mark(sample=21)] == [0, 1]
    assert is_marked(claimed)


def test_an_unstarted_lease_that_was_claimed_ahead_is_not_wedged() -> None:
    succeed(*[1.0] * 20)
    noop.enqueue()
    claimed = claim_one()
    Lease.objects.filter(id=claimed.lease_id).update(claimed_at=past(HOUR))
    assert mark() == 0
    assert not is_marked(claimed)


def say_progress(claimed: Claimed) -> None:
    write_notes(connection, [Note(claimed.lease_id, None, 50.0, "half")])


def say_line(claimed: Claimed) -> None:
    write_logs(connection, [LogLine(claimed.lease_id, 0.0, 20, "", "still here")])


SIGNS = pytest.mark.parametrize("give_sign", [say_progress, say_line])


@SIGNS
def test_a_sign_of_life_keeps_an_attempt_from_being_marked(give_sign: Any) -> None:
    succeed(*[1.0] * 20)
    claimed = run(since=HOUR)
    give_sign(claimed)
    assert mark() == 0
    assert mark(least=timedelta(0), factor=-1) == 1


@SIGNS
def test_a_later_sign_of_life_clears_the_mark(give_sign: Any) -> None:
    succeed(*[1.0] * 20)
    claimed, other = run(since=HOUR), run(since=HOUR)
    assert mark() == 2
    Lease.objects.update(wedged_at=past(MINUTE))
    give_sign(claimed)
    assert mark() == 0
    assert (is_marked(claimed), is_marked(other)) == (False, True)


def test_the_line_of_an_earlier_attempt_is_no_sign_of_life() -> None:
    succeed(*[1.0] * 20)
    result = noop.using(max_attempts=2).enqueue()
    first = claim_one()
    say_line(first)
    end(first, OutcomeKind.FAILED, delay=0)
    Task.objects.filter(id=result.id).update(status="ready")
    second = claim_one()
    Lease.objects.filter(id=second.lease_id).update(started_at=past(HOUR))
    assert mark() == 1


def test_the_start_of_a_body_is_no_progress() -> None:
    noop.enqueue()
    claimed = claim_one()
    write_notes(connection, [Note(claimed.lease_id, 1.0, None, None)])
    assert lease_of(claimed).progressed_at is None
    say_progress(claimed)
    noted = lease_of(claimed).progressed_at
    assert noted is not None
    write_notes(connection, [Note(claimed.lease_id, 1.0, None, None)])
    assert lease_of(claimed).progressed_at == noted


def test_an_attempt_that_has_ended_keeps_its_mark_and_is_wedged_no_more() -> None:
    succeed(*[1.0] * 20)
    claimed = run(since=HOUR)
    assert mark() == 1
    end(claimed, OutcomeKind.SUCCEEDED)
    assert is_marked(claimed)
    assert not wedged.wedged()


def test_with_nothing_that_runs_for_long_it_is_one_statement() -> None:
    succeed(*[1.0] * 20)
    run(since=MINUTE)
    with CaptureQueriesContext(connection) as queries:
        mark()
    assert len(queries) == 1
