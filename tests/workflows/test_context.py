"""The context of a workflow: values that its steps read, and that count once a step has ended."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DataError, InternalError, connection

from taskqueue import Fixed, TaskQueueError, chain, current, fan_out, group, task, workflow
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.postgresql.workflows import FOLD
from taskqueue.engine.record import record
from taskqueue.engine.workflows import notes
from taskqueue.engine.workflows.rounds import fold_and_advance
from taskqueue.engine.workflows.serving import serve
from taskqueue.models import Step, StepEnd, Task, Workflow
from taskqueue.testing import Crash, run_due, run_next
from taskqueue.workflows import Builder
from tests.engine.steps import claim, outcome, policy
from tests.sample.tasks import add
from tests.workflows.steps_of import assert_settled, finish

pytestmark = pytest.mark.django_db(transaction=True)


@task
def put(key: str, value: Any) -> None:
    current().workflow.update(**{key: value})


@task
async def put_async(key: str, value: Any) -> Any:
    own = current().workflow
    own.update(**{key: value})
    return [own.step, own.get("before")]


@task(atomic=True)
def put_atomically(key: str, value: Any) -> None:
    current().workflow.update(**{key: value})


@task
def tell(*keys: str) -> Any:
    own = current().workflow
    return [str(own.id), own.name, own.step, own.place, {key: own.get(key) for key in keys}]


@task(max_attempts=2, backoff=Fixed(0))
def put_and_fail(key: str) -> None:
    current().workflow.update(**{key: current().attempt})
    if current().attempt == 1:
        raise ValueError("not yet")


@task(max_crashes=2, crash_delay=0)
def put_and_crash(key: str) -> None:
    current().workflow.update(**{key: current().attempt, f"{key}-{current().attempt}": True})
    if current().attempt == 1:
        raise Crash


@task
def put_and_fan_out() -> Any:
    current().workflow.update(parts=3)
    return fan_out(put, [((f"part-{n}", n), {}) for n in range(3)])


@workflow(name="tests.telling")
def telling(wf: Builder) -> None:
    first = wf.step(put.s("rows", 5), name="first")
    wf.step(tell.map(["rows", "absent"]), name="told", after=first)


def test_a_body_knows_its_workflow_and_its_values() -> None:
    run = finish(telling.enqueue())
    assert run.return_value == [
        [str(run.id), "tests.telling", "told", 0, {"rows": 5}],
        [str(run.id), "tests.telling", "told", 1, {"absent": None}],
    ]
    assert run.context == {"rows": 5}
    assert_settled(run)


def test_a_body_sees_the_values_as_they_were_when_it_first_asked() -> None:
    @task(name="tests.reads_own")
    def reads_own() -> Any:
        own = current().workflow
        own.update(x=2)
        Workflow.objects.filter(id=own.id).update(context={"x": 1, "y": 1})
        before = dict(own)
        Workflow.objects.filter(id=own.id).update(context={"x": 0})
        return [before, dict(own), "x" in own, len(own)]

    run = finish(reads_own.s().enqueue())
    assert run.return_value == [{}, {}, False, 0]
    assert run.context == {"x": 2}


def test_updates_of_a_map_are_merged_by_key() -> None:
    run = finish(put.starmap([(f"k{n}", n) for n in range(20)]).enqueue())
    assert run.context == {f"k{n}": n for n in range(20)}
    assert run.return_value == [None] * 20
    assert_settled(run)


def test_a_later_end_goes_before_an_earlier_one() -> None:
    run = group(put.s("who", n) for n in range(3)).enqueue()
    claimed = claim(3)
    ages = {0: 2.0, 1: 3.0, 2: 1.0}
    outcomes = [
        Outcome(each.lease_id, OutcomeKind.SUCCEEDED, ages[n], updates=f'{{"who":{n},"k{n}":1}}')
        for n, each in enumerate(claimed)
    ]
    with transaction(connection):
        record(connection, outcomes, policy=policy())
    finish(run)
    assert run.context == {"who": 2, "k0": 1, "k1": 1, "k2": 1}
    assert_settled(run)


def test_a_stopped_or_stale_attempt_changes_nothing() -> None:
    run = group(put.s("who", n) for n in range(2)).enqueue()
    stopped, stale = claim(2)
    Task.objects.get(id=stopped.task_id).leases.update(
        stop_requested_at="2026-01-01T00:00Z", stop_seen_at="2026-01-01T00:00Z"
    )
    Task.objects.get(id=stale.task_id).leases.update(status="lost", finished_at="2026-01-01T00:00Z")
    Task.objects.filter(id=stale.task_id).update(status="ready")
    outcomes = [
        Outcome(each.lease_id, OutcomeKind.SUCCEEDED, 0.0, updates='{"who": "wrong"}', has_fan=True)
        for each in (stopped, stale)
    ]
    with transaction(connection):
        recorded = record(connection, outcomes, policy=policy())
    assert {row.lease_status for row in recorded.values()} == {"stopped"}
    finish(run)
    assert run.context == {"who": 1}
    assert_settled(run)


@pytest.mark.parametrize("body", [put_and_fail, put_and_crash])
def test_an_attempt_that_failed_or_was_lost_changes_nothing(body: Any) -> None:
    run = finish(body.s("n").enqueue())
    assert run.status == "succeeded"
    assert run.context["n"] == 2
    assert "n-1" not in run.context
    assert_settled(run)


@pytest.mark.parametrize("body", [put_async, put_atomically])
def test_async_and_atomic_bodies_change_the_context(body: Any) -> None:
    run = finish(chain(put.si("before", 1), body.si("after", 2)).enqueue())
    assert run.context == {"before": 1, "after": 2}
    if body is put_async:
        assert run.return_value == ["put_async", 1]
    assert_settled(run)


def test_a_body_may_fan_out_and_change_the_context() -> None:
    run = finish(put_and_fan_out.s().enqueue())
    assert run.context == {"parts": 3, "part-0": 0, "part-1": 1, "part-2": 2}
    assert run.return_value == [None] * 3
    assert_settled(run)


def test_a_child_has_its_own_context() -> None:
    @workflow(name="tests.around_telling")
    def around(wf: Builder) -> None:
        first = wf.step(put.s("rows", 7))
        wf.step(telling.s(), after=first, name="inner")

    run = finish(around.enqueue())
    assert run.context == {"rows": 7}
    assert run.return_value[0][4] == {"rows": 5}


def test_an_update_that_is_too_large_fails_the_attempt_at_once() -> None:
    @task(name="tests.puts_much", max_attempts=3)
    def puts_much() -> None:
        current().workflow.update(x="y" * 70_000)

    run = finish(puts_much.s().enqueue())
    assert run.status == "failed"
    assert run.error is not None
    assert "context" in run.error["message"]
    assert Task.objects.get().attempt == 1
    assert run.context == {}


def test_a_context_that_becomes_too_large_fails_the_step_that_made_it_so() -> None:
    large = "y" * 40_000
    run = finish(chain(put.si("x", large), put.si("z", large), add.si(1, 2)).enqueue())
    assert run.status == "failed"
    assert [step.status for step in run.steps.values()] == ["succeeded", "failed", "cancelled"]
    assert run.context == {"x": large}
    assert run.error is not None
    assert run.error["error_class"] == "taskqueue.exceptions.InvalidWorkflow"
    assert "context" in run.error["message"]
    assert_settled(run)


def test_values_that_json_has_not_fail_the_attempt() -> None:
    @task(name="tests.puts_object")
    def puts_object() -> None:
        current().workflow.update(x=object())

    run = finish(puts_object.s().enqueue())
    assert run.status == "failed"
    assert run.context == {}


def test_a_task_without_a_workflow_gets_an_error_that_says_so() -> None:
    result = tell.enqueue()
    run_due(errors="record")
    result.refresh()
    assert result.status == "failed"
    assert result.errors[0].exception_class_path == f"{TaskQueueError.__module__}.TaskQueueError"
    assert "belongs to no workflow" in result.errors[0].message


def test_notes_are_applied_in_several_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MOST_NOTES", 3)
    run = put.starmap([(f"k{n}", n) for n in range(8)]).enqueue()
    with transaction(connection):
        outcomes = [
            outcome(each, OutcomeKind.SUCCEEDED)._replace(updates=f'{{"k{n}": {n}}}')
            for n, each in enumerate(claim(8))
        ]
        recorded = record(connection, outcomes, policy=policy())
    steps = {row.step_id for row in recorded.values() if row.step_id is not None}
    fold_and_advance(connection, steps)
    run.refresh()
    assert run.status == "succeeded"
    assert run.context == {f"k{n}": n for n in range(8)}
    assert_settled(run)


def test_a_duty_applies_what_no_worker_did_and_then_rests() -> None:
    run = chain(put.si("x", 1), add.si(1, 2)).enqueue()
    with transaction(connection):
        outcomes = [
            outcome(each, OutcomeKind.SUCCEEDED)._replace(updates='{"x": 1}') for each in claim(1)
        ]
        record(connection, outcomes, policy=policy())
    assert StepEnd.objects.filter(updates__isnull=False).count() == 1
    assert serve(connection)
    assert not serve(connection)
    assert claim(1), "The next step is released."
    run.refresh()
    assert run.context == {"x": 1}


def test_a_note_of_a_step_that_has_ended_is_only_counted() -> None:
    run = finish(put.s("x", 1).enqueue())
    row = Task.objects.get()
    StepEnd.objects.create(
        subject=row.id, workflow_id=run.id, step_id=row.step_id, status="succeeded",
        updates={"x": 2}, has_fan=True,
    )  # fmt: skip
    assert not serve(connection)
    assert not StepEnd.objects.exists()
    run.refresh()
    assert run.context == {"x": 1}


@pytest.mark.parametrize("error", [ValueError, DataError])
def test_a_workflow_that_cannot_be_advanced_keeps_no_worker_busy(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*args: Any, **kwargs: Any) -> None:
        raise error("seeded")

    monkeypatch.setattr("taskqueue.engine.workflows.advancing.apply_notes", break_down)
    run = put.s("x", 1).enqueue()
    run_next()
    assert not serve(connection)
    run.refresh()
    assert run.status == "running"
    assert "seeded" in Workflow.objects.get().trouble
    monkeypatch.undo()
    finish(run)
    assert run.context == {"x": 1}


def test_an_error_of_the_session_is_no_trouble_of_a_workflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def break_down(*args: Any, **kwargs: Any) -> None:
        raise InternalError("terminating connection due to idle-in-transaction timeout")

    monkeypatch.setattr("taskqueue.engine.workflows.advancing.apply_notes", break_down)
    run = put.s("x", 1).enqueue()
    with pytest.raises(InternalError):
        run_next()
    monkeypatch.undo()
    assert finish(run).context == {"x": 1}
    assert Workflow.objects.get().trouble == ""


@pytest.mark.postgresql_only
def test_a_fold_looks_for_notes_that_it_leaves_in_an_index_of_them_alone() -> None:
    run = add.map(range(3000)).enqueue()
    [step] = Step.objects.filter(workflow_id=run.id)
    with transaction(connection):
        record(connection, [outcome(each, "succeeded") for each in claim(500)], policy=policy())
    with connection.cursor() as cursor, transaction(connection):
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {FOLD}", {"steps": [step.id], "series": 0})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "taskqueue_stepend_special" in plan
