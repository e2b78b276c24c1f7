"""With retry_on="same" the next attempt is for the worker of the last one, while that is there."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from taskqueue import Concurrency, InvalidTask, control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed
from taskqueue.engine.stays import release_stays
from taskqueue.engine.takeover import take_over
from taskqueue.engine.tally import Subject, Tally
from taskqueue.models import Stay, Worker
from taskqueue.monitoring.why import why
from taskqueue.testing import Crash, run_due
from tests.engine.steps import (
    claim,
    claim_one,
    make_due,
    outcome,
    policy,
    promote,
    run_out,
    task_of,
)
from tests.engine.test_apart import alive, take
from tests.sample.tasks import noop
from tests.testing.bodies import perform, play

pytestmark = pytest.mark.django_db(transaction=True)

staying = noop.using(retry_on="same", max_attempts=5, crash_delay=0)


def end_here(claimed: Claimed, kind: OutcomeKind, **fields: Any) -> None:
    """Record as the worker of the attempt does."""
    subject = Subject(claimed.task_id, claimed.queue_name, claimed.name, None, stays=True)
    tally = Tally(lambda lease_id: subject)
    record(connection, [outcome(claimed, kind, **fields)], policy=policy(), tally=tally)


def retried(kind: OutcomeKind = OutcomeKind.FAILED) -> Any:
    """A task whose first attempt by w1 has failed, and whose next one is due."""
    alive("w1", lease_seconds=30)
    result = staying.enqueue()
    end_here(claim_one(), kind, delay=0)
    make_due(result)
    promote()
    return result


@pytest.mark.parametrize(
    "kind",
    [OutcomeKind.FAILED, OutcomeKind.RETRY_LATER, OutcomeKind.SNOOZED, OutcomeKind.LOST],
)
def test_the_same_worker_takes_the_next_attempt_and_no_other(kind: OutcomeKind) -> None:
    result = retried(kind)
    assert claim(worker="w2") == take("w2") == []
    release_stays(connection)
    assert "stays" in {reason.code for reason in why(task_of(result))}
    [second] = take("w1")
    end_here(second, OutcomeKind.SUCCEEDED)
    result.refresh()
    assert (result.status, result.worker_names) == ("succeeded", ["w1", "w1"])
    release_stays(connection)
    assert not Stay.objects.exists()


@pytest.mark.parametrize("changes", [{"status": "stopped"}, {"status": "quiet"}, {"is_gone": True}])
def test_any_worker_takes_it_once_that_one_is_gone_or_takes_nothing(changes: Any) -> None:
    result = retried()
    if changes.get("is_gone"):
        Worker.objects.all().delete()
    else:
        Worker.objects.update(**changes)
    release_stays(connection)
    assert not Stay.objects.exists()
    second = claim_one(worker="w2")
    end_here(second, OutcomeKind.SUCCEEDED)
    result.refresh()
    assert result.worker_names == ["w1", "w2"]


def test_it_is_released_while_it_waits_for_its_time_too() -> None:
    alive("w1", lease_seconds=30)
    result = staying.enqueue()
    end_here(claim_one(), OutcomeKind.FAILED, delay=60)
    Worker.objects.update(status="lost")
    release_stays(connection)
    assert (task_of(result).route, task_of(result).pinned_to) == (0, "")


def test_a_task_taken_over_from_a_lost_worker_may_run_anywhere() -> None:
    result = retried()
    [second] = take("w1")
    Worker.objects.update(status="lost")
    release_stays(connection)
    assert Stay.objects.exists(), "It runs: who takes it over decides."
    run_out(second)
    take_over(connection, policy=policy(), grace=policy().park_limit * 0, tally=Tally())
    release_stays(connection)
    make_due(result)
    promote()
    assert claim_one(worker="w2").task_id == second.task_id


def test_a_worker_that_does_not_know_the_definition_is_none_to_stay_on() -> None:
    result = staying.enqueue()
    end_here(claim_one(), OutcomeKind.PARKED, delay=0)
    assert task_of(result).pinned_to == ""


def test_a_task_that_is_retried_by_hand_after_its_end_is_for_any_worker() -> None:
    result = retried()
    [second] = take("w1")
    end_here(second, OutcomeKind.SUCCEEDED)
    release_stays(connection)
    control.retry(result.id)
    assert claim_one(worker="w2").attempt == 3


def test_other_tasks_are_not_pinned() -> None:
    result = noop.using(max_attempts=2).enqueue()
    claimed = claim_one()
    record(connection, [outcome(claimed, OutcomeKind.FAILED, delay=0)], policy=policy())
    assert task_of(result).pinned_to == ""
    assert not Stay.objects.exists()


def test_in_tests_too_the_worker_stays_the_same() -> None:
    ends = iter([ValueError(), Crash(), None])

    def raise_next() -> None:
        if (error := next(ends)) is not None:
            raise error

    play["stay"] = raise_next
    perform.using(retry_on="same", crash_delay=0).enqueue("stay")
    runs = run_due(backoff="skip", workers=["a", "b"])
    play.clear()
    assert [run.outcome for run in runs] == ["failed", "lost", "succeeded"]
    assert len({run.worker_name for run in runs}) == 1


@pytest.mark.parametrize(
    "options",
    [{"workers": 2}, {"worker_names": "a"}, {"broadcast": True}, {"concurrency": Concurrency(1)}],
)
def test_it_excludes_what_else_decides_on_the_worker(options: Any) -> None:
    with pytest.raises(InvalidTask, match="retry_on='same' excludes"):
        staying.using(**options)
