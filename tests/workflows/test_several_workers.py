"""Tasks of several workers, and of all that live, as steps."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from taskqueue import chain, current, fan_out, task, workflow
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Lease, Task
from taskqueue.testing import run_due
from taskqueue.workflows import Builder
from tests.engine.steps import end
from tests.engine.test_apart import take
from tests.sample.shared_tasks import name_worker
from tests.sample.tasks import add, echo
from tests.workflows.steps_of import assert_settled, finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)
WORKERS = ("a", "b", "c")


@task(broadcast=True)
def clear_cache(version: int) -> str:
    return f"{current().worker_name} cleared {version}"


@task(broadcast=True, max_attempts=1)
def fail_on_b() -> str:
    if current().worker_name == "b":
        raise ValueError("not on b")
    return current().worker_name


@task(workers=2)
def spread_by_two() -> Any:
    return fan_out(add, [((1,), {})])


@task(workers=2)
def put_by_two() -> None:
    current().workflow.update(x=1)


def test_a_step_of_several_workers_gives_the_list_of_their_results() -> None:
    @workflow(name="tests.by_two")
    def by_two(wf: Builder) -> None:
        names = wf.step(name_worker.using(workers=2).s(), name="names")
        wf.step(echo.s(names), name="after")

    run = by_two.enqueue()
    run_due(workers=WORKERS)
    run.refresh()
    [[names], _] = run.return_value
    assert len(set(names)) == 2
    assert set(names) < set(WORKERS)
    assert_settled(run)


def test_a_broadcast_has_a_step_before_and_one_after_it() -> None:
    """Before, on every worker, and after with all results: as PowerJob's broadcast has it."""
    run = chain(add.s(1, 2), clear_cache.s(), echo.s()).enqueue()
    run_due(workers=WORKERS)
    run.refresh()
    [[results], _] = run.return_value
    assert sorted(results) == ["a cleared 3", "b cleared 3", "c cleared 3"]
    before, on_all, after = Task.objects.order_by("started_at", "id")
    assert (before.name, on_all.name, after.name) == (add.name, clear_cache.name, echo.name)
    assert Lease.objects.filter(task=on_all).count() == 3
    assert_settled(run)


def test_a_broadcast_that_fails_on_a_worker_fails_its_step() -> None:
    @workflow(name="tests.broadcast_fails")
    def fails(wf: Builder) -> None:
        on_all = wf.step(fail_on_b.s(), name="on_all")
        wf.step(echo.s(on_all), name="after")
        wf.step(echo.s(on_all.error), after=on_all.failed, name="handler")

    run = fails.enqueue()
    run_due(workers=WORKERS, errors="record")
    run.refresh()
    assert statuses(run) == {"on_all": "failed", "after": "cancelled", "handler": "succeeded"}
    assert run.error is not None
    assert run.error["message"] == "not on b"
    assert_settled(run)


def test_members_of_a_map_may_each_have_several_workers() -> None:
    run = clear_cache.map([1, 2]).enqueue()
    run_due(workers=WORKERS)
    run.refresh()
    assert [len(each) for each in run.return_value] == [3, 3]
    assert run.steps["clear_cache"].ended == 2
    assert_settled(run)


@pytest.mark.parametrize("body", [spread_by_two, put_by_two])
def test_a_body_of_several_workers_neither_fans_out_nor_changes_the_context(body: Any) -> None:
    run = body.s().enqueue()
    run_due(workers=WORKERS, errors="record")
    run.refresh()
    assert run.status == "failed"
    assert run.context == {}
    assert run.error is not None
    assert run.error["error_class"] == "taskqueue.exceptions.InvalidWorkflow"
    assert_settled(run)


def test_a_cancelled_workflow_stops_a_broadcast_on_all_workers() -> None:
    run = chain(clear_cache.s(1), echo.s()).enqueue()
    run.cancel("not needed")
    run_due(workers=WORKERS)
    run.refresh()
    assert run.status == "cancelled"
    assert not Lease.objects.exists()
    assert_settled(run)


def test_a_cancelled_workflow_ends_a_task_that_waits_for_its_next_worker() -> None:
    run = chain(name_worker.using(workers=2).s(), echo.s()).enqueue()
    run_due(workers=("a",))
    by_two = Task.objects.get(name=name_worker.name)
    assert (by_two.status, by_two.open_slots) == ("running", 1)
    run.cancel("not needed")
    run_due(workers=WORKERS)
    run.refresh()
    assert run.status == "cancelled"
    assert Lease.objects.count() == 1
    by_two.refresh_from_db()
    assert (by_two.status, by_two.open_slots) == ("cancelled", 0)
    assert_settled(run)


def test_no_other_worker_joins_a_task_whose_workflow_is_cancelled() -> None:
    """Neither while it runs, nor after the attempt that ran did not succeed."""
    run = chain(name_worker.using(workers=2).s(), echo.s()).enqueue()
    (first,) = take("a")
    run.cancel("not needed")
    assert take("b") == []
    end(first, OutcomeKind.FAILED)
    assert take("b") == []
    run_due(workers=WORKERS)
    run.refresh()
    assert run.status == "cancelled"
    assert_settled(run)


@override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False})
def test_a_map_over_a_step_that_did_not_succeed_is_empty() -> None:
    @workflow(name="tests.map_over_missing")
    def over_missing(wf: Builder) -> None:
        count = wf.step(add.s(1, 1), name="count")
        skipped = wf.step(echo.s(), when=count > 5, name="skipped")
        failed = wf.step(add.s("x"), on_failure="continue", name="failed")
        over_skipped = wf.step(add.map(skipped["rows"]), after=[count], name="over_skipped")
        over_failed = wf.step(add.map(failed), name="over_failed")
        wf.step(echo.s(over_skipped, over_failed), name="all")

    run = finish(over_missing.enqueue())
    assert statuses(run)["skipped"] == "skipped"
    assert run.return_value == [[[], []], {}]
    assert_settled(run)


def test_a_map_over_no_list_fails_and_says_so() -> None:
    @task(name="tests.returns_nothing")
    def returns_nothing() -> None:
        return None

    run = finish(chain(returns_nothing.s(), add.map()).enqueue())
    assert run.status == "failed"
    assert run.error is not None
    assert "a map needs a list of items" in run.error["message"]


def test_a_map_over_an_empty_list_is_empty() -> None:
    @task(name="tests.returns_an_empty_list")
    def returns_an_empty_list() -> list[int]:
        return []

    run = finish(chain(returns_an_empty_list.s(), add.map(), echo.s()).enqueue())
    assert run.return_value == [[[]], {}]
    assert_settled(run)
