"""When a worker folds what it has recorded, and how surely what follows is committed."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.transaction import atomic

from taskqueue import group
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed
from taskqueue.engine.statement import fetch
from taskqueue.engine.workflows.closing import Closing
from taskqueue.engine.workflows.rounds import fold_and_advance
from taskqueue.models import Step, Task, Worker
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.workflows import StepEnds
from tests.engine.steps import another_connection, claim, outcome, policy
from tests.engine.test_workers import registered
from tests.sample.tasks import add, echo
from tests.workflows.steps_of import assert_settled

pytestmark = pytest.mark.django_db(transaction=True)


def recorded(tasks: list[Claimed]) -> Exchange:
    """Record successes of tasks, as a request of a worker's main thread does."""
    ends = [outcome(task, OutcomeKind.SUCCEEDED, return_value="1") for task in tasks]
    with transaction(connection):
        return Exchange(recorded=record(connection, ends, policy=policy()))


def test_the_last_members_of_a_wide_map_are_counted_with_the_record_that_ends_them() -> None:
    run = add.starmap((n, 1) for n in range(300)).enqueue()
    tasks = claim(300)
    ends = StepEnds()
    ends.take(connection, recorded(tasks[:10]))
    ends.take(connection, recorded(tasks[10:20]))
    assert Step.objects.get().ended == 10, "It was folded a moment ago, and lacks many."
    ends.take(connection, recorded(tasks[20:180]))
    ends.take(connection, recorded(tasks[180:]))
    run.refresh()
    assert run.status == "succeeded"
    assert_settled(run)


@pytest.mark.postgresql_only
def test_only_what_workers_do_of_themselves_need_not_outlive_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[str] = []
    close = Closing.close

    def noted(self: Any, releaser: Any) -> None:
        close(self, releaser)
        found.append(fetch(connection, "SHOW synchronous_commit")[0][0])

    monkeypatch.setattr(Closing, "close", noted)
    run = (add.s(1, 1) | add.s(1) | add.s(1)).enqueue()
    recorded(claim(1))
    fold_and_advance(connection, [Step.objects.get(name="add").id])
    recorded(claim(1))
    with atomic():  # Somebody else's transaction.
        fold_and_advance(connection, [Step.objects.get(name="add-2").id])
    run.cancel()
    assert found == ["on", "off", "on", "on"]


@pytest.mark.postgresql_only
@pytest.mark.parametrize("kind", [OutcomeKind.SUCCEEDED, OutcomeKind.FAILED])
def test_the_end_of_a_workflow_outlives_a_crash_beside_others_that_go_on(
    monkeypatch: pytest.MonkeyPatch, kind: OutcomeKind
) -> None:
    found: list[str] = []
    close = Closing.close

    def noted(self: Any, releaser: Any) -> None:
        close(self, releaser)
        found.append(fetch(connection, "SHOW synchronous_commit")[0][0])

    ending = add.starmap([(1, 1)]).enqueue()
    (add.s(1, 1) | add.s(1)).enqueue()
    last = Task.objects.get(step__workflow=ending.id)
    ends = [
        outcome(
            task,
            kind if task.task_id == str(last.id) else OutcomeKind.SUCCEEDED,
            return_value="1",
            retryable=False,
        )
        for task in claim(2)
    ]
    with transaction(connection):
        record(connection, ends, policy=policy())
    monkeypatch.setattr(Closing, "close", noted)
    running = Step.objects.filter(status="running").values_list("id", flat=True)
    fold_and_advance(connection, list(running))
    ending.refresh()
    assert (ending.status, found) == (kind, ["on"])


@pytest.mark.postgresql_only
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_release_wakes_workers_that_sleep(is_cancelled: bool) -> None:
    """Also where nothing became ready but members of a map beside it."""
    registered("w1")
    Worker.objects.update(is_idle=True)
    (add.s(1, 1) | group(add.s(1), echo.map([1, 2]))).enqueue()
    recorded(claim(1))
    if is_cancelled:
        Task.objects.filter(step__name="group.add").update(status="cancelled")
    with another_connection() as listener:
        listener.cursor().execute("LISTEN taskqueue")
        fold_and_advance(connection, [Step.objects.get(name="add").id])
        assert list(listener.connection.notifies(timeout=60, stop_after=1))
