"""A task that a newer version enqueued is parked for a worker of that version, not failed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.retries import Fixed
from taskqueue.declarations.snapshots import GRACES, NUMBERS
from taskqueue.engine.tally import Tally
from taskqueue.worker.bodies.context import Context
from taskqueue.worker.bodies.execution import Attempt
from taskqueue.worker.bodies.interrupts import TimeLimits
from taskqueue.worker.bodies.memory_room import MemoryRoom
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.jobs import Job
from tests.sample.tasks import add, fail
from tests.worker.test_jobs import CLAIMED, NOW


def run(name: str, options: Any, args: str = "[]") -> Outcome:
    """Run one attempt here, as a child does."""
    order = Order(7, "id", name, 1, args, "{}", json.dumps(options), "{}", 0, 1, None, "q", None)
    context = Context(
        task_id=order.task_id,
        _lease_id=order.lease_id,
        attempt=1,
        worker_name="w1",
        metadata={},
        _report_progress=lambda *said: None,
        _report_line=lambda *said: None,
    )
    frame: Any = Attempt(order, context, Tally()).run(
        lambda definition, context, args, kwargs: definition.call(*args, **kwargs)
    )
    return Outcome(*frame[1])


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("shop.tasks.new", {}, "No definition of 'shop.tasks.new' on this worker"),
        (fail.name, {"colour": "red"}, "does not know the option 'colour'"),
        (fail.name, {"backoff": {"policy": "cubic"}}, "does not know the option backoff="),
        (fail.name, {"backoff": {"policy": "fixed", "slope": 1}}, "'slope': 1"),
        (fail.name, {"backoff": {"policy": "fixed", "seconds": -1}}, "'seconds': -1"),
        (fail.name, {"backoff": {}, "timeout": 1, "zzz": 1}, "the option 'zzz'"),
        *((fail.name, {name: "5 s"}, f"the option {name}='5 s'") for name in NUMBERS),
    ],
)
def test_a_task_unknown_to_this_version_is_parked_before_its_body_starts(
    name: str, options: Any, reason: str
) -> None:
    before = time.monotonic()
    outcome = run(name, options)
    assert (outcome.kind, outcome.delay) == (OutcomeKind.PARKED, 10.0)
    assert before <= outcome.ended <= time.monotonic()
    assert outcome.started is None
    assert reason in outcome.error_message
    assert outcome.error_class == "taskqueue.exceptions.UnknownTask"


def test_a_task_known_to_this_version_runs() -> None:
    outcome = run(add.name, {"timeout": 5, "backoff": Fixed(3).snapshot()}, args="[1, 2]")
    assert (outcome.kind, outcome.return_value) == (OutcomeKind.SUCCEEDED, "3")
    failed = run(fail.name, {"backoff": Fixed(3).snapshot()})
    assert (failed.kind, failed.delay) == (OutcomeKind.FAILED, 3.0)
    assert failed.started is not None
    assert failed.started <= failed.ended <= time.monotonic()


@pytest.mark.parametrize("value", ["5 s", [5], 10**400, -(10**400), 1e300])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_limit_that_is_no_number_ends_neither_the_worker_nor_its_child(
    name: str, value: Any
) -> None:
    options = json.dumps({name: value, "timeout_from": "progress"})
    claimed = CLAIMED._replace(options=options, deadline_in=None)
    job = Job(claimed, NOW)
    job.start(NOW)
    job.progressed(NOW + 1)
    assert (job.limit_at, job.check_memory_at) == (None, None)
    order = Order._make(job.order)
    TimeLimits(pytest.fail).add(order)
    assert MemoryRoom().has_room(order)
    assert job.snapshot == {}


@pytest.mark.parametrize("name", GRACES)
def test_a_grace_of_null_is_not_computed_with(name: str) -> None:
    assert Job(CLAIMED._replace(options=json.dumps({name: None})), NOW).snapshot == {}


def test_options_that_are_no_object_are_parked_and_end_no_child() -> None:
    order = Order._make(Job(CLAIMED._replace(options="[1]"), NOW).order)
    TimeLimits(pytest.fail).add(order)
    assert run(fail.name, [1]).kind == OutcomeKind.PARKED
