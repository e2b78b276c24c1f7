"""Records of a busy worker beside its claims, on a second connection."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError, connection

from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.core.states import TaskStatus
from taskqueue.engine.statement import fetch
from taskqueue.models import Lease, Rollup, Task, TaskLog
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.recorder import BATCH, LINGER, LONG_LINGER, MOST_UNRECORDED, REST
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker.played import NOW, PlayedWorker
from tests.worker_process import wait_until

LINE = ("a line",)


@pytest.fixture
def busy() -> PlayedWorker:
    """A worker that has work for its children, and has looked at everything."""
    worker = PlayedWorker(slots=0).rest()
    worker.dispatcher.held = worker.dispatcher.pool.held = 2 * BATCH
    return worker


def end(worker: PlayedWorker, number: int) -> None:
    worker.pending.outcomes += [Outcome(n, OutcomeKind.SUCCEEDED, NOW) for n in range(number)]


def test_a_whole_batch_is_recorded_beside_a_claim(busy: PlayedWorker) -> None:
    busy.slots = BATCH
    busy.timetable.look_again()
    claim = busy.next_request()
    end(busy, BATCH)

    busy.recorder.send(NOW)

    assert claim is not None
    assert claim.want == BATCH
    assert not claim.writes
    assert len(busy.second.under_way.outcomes) == BATCH
    assert busy.coordinator.has_work


def test_fewer_are_recorded_with_the_next_claim(busy: PlayedWorker) -> None:
    end(busy, BATCH - 1)

    busy.recorder.send(NOW)

    assert busy.second.under_way is None
    assert busy.next_request(NOW + LINGER) is None, "a batch is near"
    request = busy.next_request(NOW + LONG_LINGER)
    assert request is not None
    assert len(request.outcomes) == BATCH - 1


def test_the_two_connections_never_write_at_the_same_time(busy: PlayedWorker) -> None:
    end(busy, 1)
    first = busy.next_request(NOW + LONG_LINGER)
    end(busy, BATCH)
    busy.recorder.send(NOW)
    assert first is not None
    assert first.writes
    assert busy.second.under_way is None, "a line of an attempt may be on its way"
    busy.answer()

    busy.recorder.send(NOW)
    assert busy.second.under_way is not None
    busy.pending.lines.append((1, NOW, "INFO", "a line"))
    end(busy, 1)
    busy.slots = BATCH
    busy.timetable.look_again()
    request = busy.next_request()

    assert request is not None
    assert request.want == BATCH
    assert not request.writes


def test_few_free_places_wait_a_moment_for_the_batch(busy: PlayedWorker) -> None:
    end(busy, BATCH)
    busy.recorder.send(NOW)
    busy.slots = 1
    busy.timetable.look_again()

    assert busy.next_request(NOW + LONG_LINGER / 2) is None
    late = busy.next_request(NOW + LONG_LINGER)

    assert late is not None
    assert late.want == 1


def test_after_a_batch_the_worker_claims_again(busy: PlayedWorker) -> None:
    """Ends may have made other tasks ready."""
    end(busy, BATCH)
    busy.recorder.send(NOW)
    busy.slots = 1
    assert not busy.coordinator.is_drained
    busy.second.answer()
    busy.coordinator.take_in(NOW)

    request = busy.next_request()

    assert request is not None
    assert request.want == 1


def test_outcomes_that_the_second_connection_failed_to_record_go_to_the_first(
    busy: PlayedWorker, caplog: pytest.LogCaptureFixture
) -> None:
    end(busy, BATCH)
    busy.recorder.send(NOW)
    busy.second.fail(OperationalError("gone"))
    busy.coordinator.take_in(NOW)
    assert "Second connection failed" in caplog.text
    busy.recorder.send(NOW)
    assert busy.second.under_way is None, "it rests"

    request = busy.next_request(NOW + LINGER)

    assert request is not None
    assert len(request.outcomes) == BATCH
    assert not busy.coordinator.outage.is_on, "the first finds out whether the database is away"
    busy.answer()
    end(busy, BATCH)
    busy.recorder.send(NOW + REST)
    assert busy.second.under_way is not None


def test_a_session_that_others_may_use_too_has_no_second_one_beside_it(busy: PlayedWorker) -> None:
    busy.thread.owns_session = False
    end(busy, BATCH)
    busy.recorder.send(NOW)
    assert busy.second.under_way is None
    assert busy.next_request(NOW + LINGER) is not None


def test_a_few_outcomes_are_recorded_though_many_places_stay_free(busy: PlayedWorker) -> None:
    """Many long bodies run in a pool with many more slots: there may never be a batch."""
    busy.slots = 2 * BATCH
    end(busy, 1)
    now, requests = NOW, []
    for _ in range(20):
        now += LONG_LINGER / 2
        busy.recorder.send(now)
        if request := busy.next_request(now):
            requests.append(request)
            busy.answer(now=now)

    assert sum(len(request.outcomes) for request in requests) == 1
    assert len(requests) < 5, "claims that find nothing are not repeated at once"


def test_nothing_is_claimed_while_too_many_outcomes_wait_for_a_batch(busy: PlayedWorker) -> None:
    end(busy, BATCH)
    busy.recorder.send(NOW)  # It is not answered: a lock.
    claimed = 0
    for number in range(100):
        now = NOW + number
        busy.slots = BATCH
        busy.timetable.look_again()
        if request := busy.next_request(now):
            claimed += request.want
            end(busy, request.want)
            busy.answer(request.want, now=now)

    assert claimed <= MOST_UNRECORDED


def test_a_batch_that_is_recorded_keeps_no_claim_waiting_while_workflows_move(
    busy: PlayedWorker,
) -> None:
    end(busy, MOST_UNRECORDED - BATCH)
    busy.recorder.send(NOW)
    end(busy, BATCH)
    busy.slots, busy.timetable.may_claim = BATCH, True
    assert busy.next_request() is None, "so many are not recorded"

    busy.second.under_way.is_recorded = True  # Its report comes after the workflows have moved.

    request = busy.next_request()
    assert request is not None
    assert request.want == BATCH
    assert not request.writes


def in_overlap_with_duties(busy: PlayedWorker, outcome: Outcome, status: str) -> Exchange:
    """Duties that look before a batch is committed, and report after it."""
    end(busy, BATCH - 1)
    busy.pending.outcomes.append(outcome)
    busy.recorder.send(NOW)
    busy.timetable.serve_duties_by(0.0)
    busy.timetable.may_claim = False
    duties = busy.next_request()
    assert duties is not None
    assert duties.with_duties
    busy.second.under_way.recorded = {outcome.lease_id: Recorded(TaskStatus(status), None)}
    busy.second.answer()
    return duties


def test_a_drain_goes_on_with_what_a_batch_made_ready_beside_the_duties(
    busy: PlayedWorker,
) -> None:
    object.__setattr__(busy.timetable._options, "drain", True)
    busy.dispatcher.pool.ready = [object()]
    busy.timetable.is_dry = False  # Else the duties would wait for the batch.
    returned = Outcome(BATCH, OutcomeKind.UNSTARTED, NOW)
    in_overlap_with_duties(busy, returned, "ready")
    busy.timetable.is_dry = True
    busy.dispatcher.held = busy.dispatcher.pool.held = 0

    busy.answer()

    assert busy.coordinator.is_settled
    assert not busy.coordinator.is_drained


def test_a_drain_that_found_nothing_more_records_a_batch_and_claims_before_the_duties(
    busy: PlayedWorker,
) -> None:
    object.__setattr__(busy.timetable._options, "drain", True)
    end(busy, BATCH)
    busy.recorder.send(NOW)
    busy.timetable.is_dry, busy.timetable.may_claim, busy.slots = True, False, 2
    busy.timetable.serve_duties_by(0.0)

    assert busy.next_request() is None, "They would have to be served again."

    busy.dispatcher.held = busy.dispatcher.pool.held = 0
    busy.second.answer()
    busy.coordinator.take_in(NOW)
    claim = busy.next_request()
    assert claim is not None
    assert (claim.want, claim.with_duties) == (2, False)
    busy.answer()
    duties = busy.next_request()
    assert duties is not None
    assert duties.with_duties


def test_a_drain_looks_at_what_an_end_has_released_that_its_body_recorded(
    busy: PlayedWorker,
) -> None:
    object.__setattr__(busy.timetable._options, "drain", True)
    busy.dispatcher.pool.ready = [object()]
    busy.timetable.is_dry = busy.timetable.is_promoted = True
    busy.dispatcher.held = busy.dispatcher.pool.held = 0
    assert busy.coordinator.is_drained

    busy.pending.recorded.append(Outcome(1, OutcomeKind.SUCCEEDED, NOW))
    busy.coordinator.take_in(NOW)

    assert not busy.coordinator.is_drained
    duties = busy.next_request()
    assert duties is not None
    assert duties.with_duties
    busy.answer()
    assert busy.coordinator.is_drained


def test_duties_under_way_when_a_body_records_its_end_are_served_again_by_a_drain(
    busy: PlayedWorker,
) -> None:
    object.__setattr__(busy.timetable._options, "drain", True)
    busy.dispatcher.pool.ready = [object()]
    busy.timetable.is_dry = True
    busy.timetable.may_claim = False
    busy.dispatcher.held = busy.dispatcher.pool.held = 0
    busy.timetable.serve_duties_by(0.0)
    assert busy.next_request() is not None

    busy.pending.recorded.append(Outcome(1, OutcomeKind.SUCCEEDED, NOW))
    busy.coordinator.take_in(NOW)
    busy.answer()

    assert not busy.coordinator.is_drained
    again = busy.next_request()
    assert again is not None
    assert again.with_duties


def test_a_retry_that_a_batch_recorded_beside_the_duties_is_looked_for_in_time(
    busy: PlayedWorker,
) -> None:
    failed = Outcome(BATCH, OutcomeKind.FAILED, NOW, delay=0.1)
    in_overlap_with_duties(busy, failed, "retrying")
    busy.coordinator.take_in(NOW)

    busy.answer()

    assert busy.coordinator.next_at(NOW) <= NOW + 0.2


def test_a_batch_takes_progress_along(busy: PlayedWorker) -> None:
    busy.pending.progress[7] = (50.0, "half", None)
    end(busy, BATCH)
    busy.recorder.send(NOW)
    assert [note.message for note in busy.second.under_way.notes] == ["half"]


# A session that records while another one claims: the first one does not do both.
BESIDE = """
SELECT recording.pid
FROM pg_stat_activity AS recording, pg_stat_activity AS claiming
WHERE recording.query LIKE '%%lease.task_id, outcome.return_value%%'
    AND claiming.query LIKE '%%picked AS MATERIALIZED%%'
    AND recording.state = 'active' AND claiming.state = 'active'
    AND pg_backend_pid() NOT IN (recording.pid, claiming.pid)
"""
NUMBER = 4000


@pytest.mark.slow
@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_lines_and_counts_are_whole_though_the_second_connection_is_lost(
    start_worker: StartWorker,
) -> None:
    tasks.log_line.enqueue_many([((), {})] * NUMBER)
    worker = start_worker("--concurrency", "2")

    def beside() -> list[Any]:
        found = fetch(connection, BESIDE, ())
        if not (found or Task.objects.filter(status="ready").exists()):  # The moment was missed.
            tasks.log_line.enqueue_many([((), {})] * NUMBER)
        return found

    [(pid,)] = wait_until(beside, what="a batch beside the claims")
    fetch(connection, "SELECT pg_terminate_backend(%s)", (pid,))

    number = Task.objects.count()
    wait_until(lambda: Task.objects.filter(status="succeeded").count() == number, 120)
    assert Lease.objects.filter(status="succeeded").count() == number
    assert TaskLog.objects.count() == number
    assert sum(Rollup.objects.values_list("tasks_succeeded", flat=True)) == number
    assert "Second connection failed" in worker.log()
