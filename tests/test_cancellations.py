"""What a handle tells of attempts without success, of who cancelled a task, and of progress."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.record import write_notes
from taskqueue.engine.rows import Note
from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult, get_result
from tests.engine.steps import claim_one, end, past, promote
from tests.engine.test_apart import take
from tests.management.test_taskqueue import run, run_json
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db
STOPPED, CANCEL = "taskqueue.exceptions.Stopped", "taskqueue.exceptions.Cancel"
LOST = "taskqueue.exceptions.AttemptLost"


def errors(result: TaskResult[Any]) -> list[tuple[int, str, str]]:
    result.refresh()
    return [(each.attempt, each.exception_class_path, each.message) for each in result.errors]


def told(result: TaskResult[Any]) -> tuple[str, str]:
    result.refresh()
    return result.cancelled_by, result.cancel_reason


async def read_on_a_loop(result: TaskResult[Any]) -> tuple[str, str]:
    return result.cancelled_by, result.cancel_reason


def test_each_attempt_that_did_not_succeed_has_its_error() -> None:
    result = add.using(max_attempts=9, max_crashes=9, crash_delay=0).enqueue(1)
    end(claim_one(), OutcomeKind.FAILED, error_class="ValueError", error_message="no", delay=0)
    promote()
    end(claim_one(), OutcomeKind.LOST, error_class=LOST, error_message="gone")
    promote()
    end(claim_one(), OutcomeKind.RETURNED, error_message="The worker was shut down.")
    end(claim_one(), OutcomeKind.SNOOZED, error_message="again in 0 s")
    promote()
    end(claim_one(), OutcomeKind.PARKED, error_class="UnknownTask", error_message="No definition")
    promote()
    claimed = claim_one()
    control.request_stop(result.id, by="ann", reason="too long")
    end(claimed, OutcomeKind.STOPPED, error_message="too long")
    assert errors(result) == [
        (1, "ValueError", "no"),
        (2, LOST, "gone"),
        (5, "UnknownTask", "No definition"),
        (6, STOPPED, "too long"),
    ]
    with_error = [each.attempt for each in result.history if each.error is not None]
    assert with_error == [1, 2, 5, 6]


@pytest.mark.parametrize(("by", "reason"), [("ann", "too long"), ("ann", ""), ("", "")])
def test_a_stopped_attempt_has_an_error_also_if_nobody_said_why(by: str, reason: str) -> None:
    result = noop.enqueue()
    claimed = claim_one()
    result.cancel(reason, by=by)
    assert (result.status, result.errors, told(result)) == ("running", [], (by, reason))
    end(claimed, OutcomeKind.STOPPED, error_message=reason)
    message = reason or f"{by or 'Somebody'} asked the task to stop."
    assert errors(result) == [(1, STOPPED, message)]
    assert (told(result), result.status) == ((by, reason), "cancelled")


def test_a_body_that_cancels_itself_says_why() -> None:
    result = noop.enqueue()
    end(claim_one(), OutcomeKind.CANCELLED, error_message="nothing to do")
    assert errors(result) == [(1, CANCEL, "nothing to do")]
    assert told(result) == ("", "nothing to do")


def test_a_task_that_is_cancelled_while_it_waits_tells_who_and_why() -> None:
    result = noop.enqueue()
    result.cancel("a mistake", by="ann")
    assert (result.status, result.errors) == ("cancelled", [])
    assert (result.cancelled_by, result.cancel_reason) == ("ann", "a mistake")
    other = get_result(result.id)
    async_to_sync(other.arefresh)()
    assert async_to_sync(read_on_a_loop)(other) == ("ann", "a mistake")
    result.retry()
    assert told(result) == ("", "")


def test_an_idle_task_of_several_workers_tells_who_cancelled_it() -> None:
    result = noop.using(workers=2).enqueue()
    end(take("a")[0], OutcomeKind.SUCCEEDED)
    result.cancel("enough", by="ann")
    assert (told(result), result.status) == (("ann", "enough"), "cancelled")


def test_a_task_that_nobody_cancelled_names_no_actor() -> None:
    result = noop.using(expires_after=60).enqueue()
    Task.objects.update(status="cancelled", finished_at=past(), error_message="It expired.")
    assert told(result) == ("", "It expired.")
    waiting = noop.enqueue()
    assert told(waiting) == ("", "")
    end(claim_one(), OutcomeKind.FAILED, error_class="ValueError", error_message="no")
    assert told(waiting) == ("", "")


def test_who_stopped_an_earlier_run_has_not_cancelled_this_one() -> None:
    result = noop.enqueue()
    claimed = claim_one()
    result.cancel("once", by="ann")
    end(claimed, OutcomeKind.STOPPED)
    result.retry()
    assert told(result) == ("", "")
    result.cancel("twice", by="bob")
    assert told(result) == ("bob", "twice")


def test_the_command_line_tells_who_and_why() -> None:
    result = noop.enqueue()
    assert "cancellation" not in run("show", str(result.id))
    result.cancel("a mistake", by="ann")
    shown = run_json("show", str(result.id))
    assert shown["cancellation"] == {"by": "ann", "reason": "a mistake"}


def test_who_waits_on_the_command_line_is_told_who_cancelled_it() -> None:
    kept = ["enqueue", noop.name, "--unique-key", "k", "--set", "unique_for=kept"]
    run(*kept)
    get_result(Task.objects.get().id).cancel("a  mistake", by="ann")
    assert "cancelled by ann: a mistake" in run(*kept)


@pytest.mark.parametrize(
    ("kind", "percent"),
    [(OutcomeKind.SUCCEEDED, 100.0), (OutcomeKind.FAILED, 50.0), (OutcomeKind.RETURNED, 50.0)],
)
def test_a_success_is_complete_and_any_other_end_as_far_as_it_came(
    kind: OutcomeKind, percent: float
) -> None:
    result = noop.enqueue()
    claimed = claim_one()
    write_notes(connection, [Note(claimed.lease_id, 0.0, 50.0, "half")])
    end(claimed, kind)
    assert result.progress == (percent, "half")


def test_a_success_of_one_of_several_workers_is_complete() -> None:
    noop.using(workers=2).enqueue()
    claimed = take("a")[0]
    write_notes(connection, [Note(claimed.lease_id, 0.0, 50.0, "half")])
    end(claimed, OutcomeKind.SUCCEEDED)
    assert Lease.objects.get().progress == 100.0


def test_a_success_that_told_of_no_progress_has_none() -> None:
    result = noop.enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    assert result.progress == (None, "")
