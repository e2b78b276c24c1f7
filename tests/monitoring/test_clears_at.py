"""Reasons tell when they clear by themselves, where that is known, and when holders end at most."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import Concurrency, Debounce, Rate, Sequence, control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Lease, Task, Worker
from taskqueue.monitoring.why.codes import CLEARING, FULLER, SENTENCES
from tests.engine.steps import claim_one, end
from tests.engine.test_limits import take
from tests.management.test_taskqueue import run_json
from tests.monitoring.rows import make_worker, told
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db(transaction=True)
SOON = timedelta(minutes=5)


@pytest.fixture(autouse=True)
def worker() -> Worker:
    """A worker that lives."""
    return make_worker(concurrency=50, lease_seconds=600)


def row_of(result: Any) -> Task:
    return Task.objects.get(id=result.id)


def test_the_sentence_of_what_clears_by_itself_tells_when() -> None:
    for code in CLEARING - {"all_paused", "definition_paused", "queue_paused"}:
        assert all("{moment}" in each for each in (SENTENCES[code], *FULLER.get(code, ())))
    for code in ("all_paused", "definition_paused", "queue_paused"):
        assert "{moment}" in FULLER[code][0]


def test_a_pause_clears_at_its_end() -> None:
    task = noop.enqueue()
    control.pause("default")
    control.pause_definition(noop.name, until=SOON)
    control.pause_all(until=2 * SOON)
    reasons = told(task)
    assert reasons["queue_paused"].clears_at is None
    definition, everything = (reasons[f"{each}_paused"].clears_at for each in ("definition", "all"))
    assert definition is not None
    assert everything is not None
    assert timezone.now() < definition < everything


def test_a_task_that_is_not_due_clears_at_its_time() -> None:
    later = noop.using(run_after=SOON).enqueue()
    assert told(later)["not_due"].clears_at == row_of(later).run_after
    quiet = add.using(debounce=Debounce(60, key="a")).enqueue(1)
    assert told(quiet)["debounced"].clears_at == row_of(quiet).run_after


def test_a_retry_clears_when_it_is_due() -> None:
    task = noop.using(max_attempts=2).enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="E", delay=60.0)
    assert told(task)["retry_due"].clears_at == row_of(task).run_after


def test_a_rate_clears_with_the_next_token() -> None:
    once = add.using(rate=Rate("1/h"))
    once.enqueue(1)
    waiting = once.enqueue(2)
    take()
    reason = told(waiting)["rate_used"]
    assert reason.clears_at == reason.moment is not None


def test_behind_the_first_of_a_sequence_nobody_knows_when() -> None:
    ordered = add.using(sequence=Sequence("a"), max_attempts=2)
    first, second = ordered.enqueue(1, 1), ordered.enqueue(1, 2)
    end(take()[0], OutcomeKind.FAILED, error_class="E", delay=60.0)
    reason = told(second)["sequence_waits"]
    assert reason.subject == str(first.id)
    assert reason.moment == row_of(first).run_after
    assert reason.clears_at is None


def held(**options: Any) -> tuple[Any, Any, Lease]:
    """A task that holds a limit and runs, one that waits for it, and the lease of the first."""
    limited = add.using(concurrency=Concurrency(1, name="one"))
    holder, waiting = limited.using(**options).enqueue(1), limited.enqueue(2)
    take()
    Lease.objects.update(started_at=timezone.now())
    return holder, waiting, Lease.objects.get()


def test_a_full_limit_tells_when_a_holder_reaches_its_timeout() -> None:
    holder, waiting, lease = held(timeout=90)
    reason = told(waiting)["holder_ends"]
    assert lease.started_at is not None
    assert (reason.subject, reason.details["task"]) == ("one", str(holder.id))
    assert reason.moment == lease.started_at + timedelta(seconds=90)
    assert reason.clears_at is told(waiting)["limit_full"].clears_at is None


def test_a_full_limit_tells_when_a_holder_reaches_its_deadline() -> None:
    holder, waiting, _ = held(timeout=3600, deadline=60)
    assert told(waiting)["holder_ends"].moment == row_of(holder).deadline_at


@pytest.mark.parametrize("options", [{}, {"timeout": 60, "timeout_from": "progress"}])
def test_a_holder_without_a_known_end_promises_nothing(options: dict[str, Any]) -> None:
    _, waiting, _ = held(**options)
    assert told(waiting).keys() == {"limit_full"}


def test_a_holder_that_has_not_started_promises_nothing() -> None:
    _, waiting, _ = held(timeout=60)
    Lease.objects.update(started_at=None)
    assert told(waiting).keys() == {"limit_full"}


def test_the_command_line_tells_it_in_json() -> None:
    later = noop.using(run_after=SOON).enqueue()
    [reason, *_] = run_json("why", later.id)["reasons"]
    assert reason["clears_at"] == reason["moment"] is not None
    assert json.dumps(reason)
