"""Workflows that stand still are counted anew: an end that nobody noted costs a minute."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, Sum
from django.utils import timezone

from taskqueue import chord, group, workflow
from taskqueue.core.outcomes import OutcomeKind, Recorded
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.workflows import reconciling, serving
from taskqueue.engine.workflows.reconciling import reconcile
from taskqueue.models import Step, StepEnd, Task, Workflow, WorkflowCount
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import run_next, travelling
from taskqueue.workflows import Builder
from tests.engine.steps import another_connection, claim, outcome, policy, run_at_once
from tests.sample.tasks import add, echo
from tests.workflows.steps_of import assert_settled, finish
from tests.workflows.test_exactly_once import work
from tests.workflows.test_fan_out import square, squares
from tests.workflows.test_running import diamond

pytestmark = pytest.mark.django_db(transaction=True)


def end_in_silence(tasks: Iterable[Task], status: str = "succeeded") -> None:
    """End tasks as an older version would that knows no workflows."""
    for task in tasks:
        rows = Task.objects.filter(id=task.id)
        rows.update(status=status, finished_at=timezone.now(), return_value=1)


def repairs() -> int:
    """Return how many steps were repaired."""
    repaired = WorkflowCount.objects.filter(what="repaired")
    return repaired.aggregate(number=Sum("number"))["number"] or 0


def end_without_folding(number: int = 100) -> dict[int, Recorded]:
    """Claim and record tasks, and leave the notes."""
    outcomes = [outcome(task, OutcomeKind.SUCCEEDED, return_value="1") for task in claim(number)]
    with transaction(connection):
        return record(connection, outcomes, policy=policy())


def test_an_end_that_nobody_noted_costs_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    run = (add.s(1, 2) | add.s(10)).enqueue()
    end_in_silence(Task.objects.filter(status="ready"))
    assert finish(run).status == "running"
    with travelling(50):
        assert finish(run).status == "running"
    with travelling(61):
        assert finish(run).status == "succeeded"
    assert run.return_value == 11
    assert repairs() == 1
    assert [each.levelname for each in caplog.records if "repaired" in each.message] == ["ERROR"]
    assert_settled(run)


def test_wide_workflows_are_counted_in_transactions_of_their_own() -> None:
    for _ in range(3):
        group(add.s(n, n) for n in range(2)).enqueue()
    Workflow.objects.update(members=reconciling.MOST_MEMBERS // 2)
    before = set(Workflow.objects.values_list("recount_at", flat=True))
    with travelling(61):
        answers = [reconcile(connection), reconcile(connection)]
        later = Workflow.objects.exclude(recount_at__in=before)
        assert (answers, later.count()) == ([True, False], 3)


def test_members_of_a_map_are_counted_with_their_failures() -> None:
    @workflow(name="tests.reconciled")
    def reconciled(wf: Builder) -> None:
        parts = wf.step(add.starmap([(n, n) for n in range(6)]), concurrency=4, tolerate=1)
        wf.step(echo.s(parts))

    run = reconciled.enqueue()
    ready = list(Task.objects.filter(status="ready").order_by("id"))
    assert len(ready) == 4, "Two are not sent."
    end_in_silence(ready[:1], "failed")
    end_in_silence(ready[1:])
    with travelling(61):
        finish(run)
    assert run.return_value == [[[None, 1, 1, 1, 8, 10]], {}]
    assert repairs() == 1
    assert_settled(run)


def test_a_child_that_ended_unheard_is_counted() -> None:
    @workflow(name="tests.with_child")
    def with_child(wf: Builder) -> None:
        wf.step(echo.s(wf.step(diamond.s(1))))

    run = with_child.enqueue()
    [child] = Workflow.objects.exclude(id=run.id)
    Step.objects.filter(workflow=child.id).update(status="succeeded", finished_at=timezone.now())
    Task.objects.filter(step__workflow=child.id).update(
        status="cancelled", finished_at=timezone.now()
    )
    Workflow.objects.filter(id=child.id).update(
        status="succeeded", open_steps=0, finished_at=timezone.now()
    )
    with travelling(61):
        assert finish(run).status == "succeeded"
    assert repairs() == 1


def test_a_member_that_fanned_out_ends_with_its_fan_out() -> None:
    run = chord([squares.s(2), squares.s(3)], echo.s()).enqueue()
    run_next()
    run_next()
    end_without_folding(2)  # Members of the fan-outs: their notes are there.
    with travelling(61):
        reconcile(connection)
        assert repairs() == 0
        [step] = Step.objects.filter(workflow=run.id, parent_step_id=None, released__gt=1)
        assert step.ended == 1, "The second has not ended, though its own body has."
        end_in_silence(Task.objects.filter(name=square.name, status="ready"))
        assert finish(run).status == "running"
    with travelling(130):
        finish(run)
    assert run.return_value == [[[[1, 1], [1, 1, 1]]], {}]
    assert repairs() == 1
    assert_settled(run)


def test_a_fan_out_that_has_ended_counts_as_its_member() -> None:
    run = (squares.s(2) | echo.s()).enqueue()
    finish(run)
    assert run.status == "succeeded"
    Step.objects.filter(workflow=run.id, parent_step_id=None).update(ended=0, failures=0)
    rows = Step.objects.filter(workflow=run.id, name="squares")
    rows.update(status="running", finished_at=None, is_due=False)
    Workflow.objects.filter(id=run.id).update(status="running", finished_at=None, open_steps=1)
    with travelling(61):
        reconcile(connection)
    assert rows.get().ended == 1
    assert rows.get().failures == 0


def test_a_noted_end_is_not_counted_twice() -> None:
    run = chord([add.s(n, 1) for n in range(3)], echo.s()).enqueue()
    end_without_folding()
    (note,) = StepEnd.objects.all()
    assert note.number == 3
    with travelling(61):
        assert not reconcile(connection)
    assert repairs() == 0
    assert Step.objects.filter(workflow=run.id, kind="map").values_list("ended")[0] == (3,)
    finish(run)
    assert_settled(run)
    assert repairs() == 0


def test_an_overlooked_step_is_advanced() -> None:
    run = (add.s(1, 2) | add.s(10)).enqueue()
    end_without_folding()
    [first] = Step.objects.filter(workflow=run.id, waits=0)
    serving.fold(connection, [first.id])
    Step.objects.filter(id=first.id).update(is_due=False)
    with travelling(61):
        assert finish(run).status == "succeeded"
    assert repairs() == 1


@pytest.mark.parametrize("field", ["ended", "failures"])
def test_counts_that_are_too_high_are_corrected(field: str) -> None:
    run = group(add.s(n, 1) for n in range(3)).enqueue()
    Step.objects.filter(workflow=run.id).update(**{field: F(field) + 1})
    with travelling(61):
        reconcile(connection)
    assert repairs() == 1
    finish(run)
    assert run.return_value == [1, 2, 3]
    assert_settled(run)


def test_a_long_task_is_looked_at_ever_more_rarely() -> None:
    run = add.s(1, 2).on_end(echo.si()).enqueue()
    looks = []
    for minute in range(121):
        with travelling(minute * 60 + 1):
            before = next_look(run)
            reconcile(connection)
            if next_look(run) != before:
                looks.append(minute)
    assert looks[:3] == [1, 3, 7]
    assert len(looks) < 20
    assert max(later - earlier for earlier, later in pairwise(looks)) <= 11
    assert repairs() == 0


def test_a_workflow_that_moves_is_only_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    run = group(add.s(n, 1) for n in range(5)).enqueue()
    monkeypatch.setattr(reconciling, "_repair", None)
    with travelling(50):
        end_without_folding(2)
        serving.serve(connection)
    with travelling(70):
        reconcile(connection)
        counted_at = Step.objects.get(workflow=run.id).counted_at
        assert counted_at is not None
        assert abs(next_look(run) - counted_at - timedelta(seconds=60)) < timedelta(seconds=1)


def test_a_paused_workflow_is_left_alone() -> None:
    run = (add.s(1, 2) | add.s(10)).enqueue()
    run.pause()
    end_in_silence(Task.objects.filter(status="ready"))
    with travelling(61):
        finish(run)
        assert [step.ended for step in run.steps.values()] == [0, 0]
        run.resume()
        assert finish(run).status == "succeeded"
    assert repairs() == 1


def test_recounts_beside_folds_and_ends_repair_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciling, "STILL", timedelta(0))
    monkeypatch.setattr(reconciling, "LONGEST", timedelta(0))
    runs = [chord([add.s(n, 1) for n in range(20)], echo.s()).enqueue() for _ in range(6)]
    Workflow.objects.update(recount_at=timezone.now())

    def recount() -> None:
        with another_connection() as own:
            for _ in range(40):
                reconcile(own)

    works: list[Any] = [partial(work, f"w{number}") for number in range(4)]
    run_at_once([*works, recount, recount])
    # A recount may have released a task when no worker was left.
    work("last")
    for run in runs:
        run.refresh()
        assert run.status == "succeeded"
        assert_settled(run)
    assert repairs() == 0


def next_look(run: WorkflowRun) -> Any:
    return Workflow.objects.values_list("recount_at", flat=True).get(id=run.id)
