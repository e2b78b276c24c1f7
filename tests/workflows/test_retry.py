"""Retrying workflows: what failed runs again, what succeeded stays."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.db import connection

from taskqueue import chain, control, fan_out, group, task, workflow
from taskqueue.engine.workflows import releasing, stopping
from taskqueue.engine.workflows.serving import serve
from taskqueue.exceptions import TransitionRefused, WorkflowDoesNotExist
from taskqueue.models import Audit, Lease, Member, Step, Task, Workflow
from taskqueue.results.workflows import WorkflowRun, get_workflow
from taskqueue.testing import run_due, run_next
from taskqueue.workflows import Builder
from tests.engine.steps import another_connection, run_at_once
from tests.sample.tasks import echo
from tests.workflows.steps_of import assert_settled, finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)

# Numbers that fail, as the tests set them.
BAD: set[int] = set()


@pytest.fixture(autouse=True)
def bad() -> Any:
    BAD.clear()
    BAD.add(1)
    yield BAD
    BAD.clear()


@task
def picky(number: int, *before: object) -> int:
    if number in BAD:
        raise ValueError(f"{number} is bad")
    return number


@task
def total_of(numbers: list[int]) -> int:
    return sum(numbers)


@task
def spread(count: int) -> Any:
    return fan_out(picky, [((number,), {}) for number in range(count)])


@workflow(name="tests.retried")
def forked(wf: Builder) -> None:
    first = wf.step(picky.s(0), name="first")
    second = wf.step(picky.s(1, first), name="second")
    wf.step(echo.s(second), name="third")
    wf.step(echo.si("page"), name="page", after=second.failed)
    wf.step(picky.s(2, first), name="other")


@workflow(name="tests.retried_parent")
def parent(wf: Builder) -> None:
    inner = wf.step(forked.s(), name="inner")
    wf.step(echo.si("done"), name="after", after=inner)


def attempts(run: WorkflowRun, step: str) -> int:
    members = Member.objects.filter(step__workflow_id=run.id, step__name=step)
    return Lease.objects.filter(task_id__in=members.values("task_id")).count()


def test_a_retry_runs_failed_steps_and_those_that_they_cancelled() -> None:
    run = finish(forked.enqueue())
    assert statuses(run) == {
        "first": "succeeded", "second": "failed", "third": "cancelled", "page": "succeeded",
        "other": "succeeded",
    }  # fmt: skip
    failed = Task.objects.get(step__name="second")
    BAD.clear()

    run.retry(reason="mended", by="eve")

    assert (run.status, run.error) == ("running", None)
    assert statuses(run) | {"second": "", "third": ""} == {
        "first": "succeeded", "second": "", "third": "", "page": "succeeded", "other": "succeeded",
    }  # fmt: skip
    finish(run)
    assert run.status == "succeeded"
    assert statuses(run)["third"] == "succeeded"
    assert {step: attempts(run, step) for step in ("first", "second", "third", "other")} == {
        "first": 1, "second": 2, "third": 1, "other": 1,
    }  # fmt: skip
    again = Task.objects.get(step__name="second")
    assert (again.id, again.attempt, again.return_value) == (failed.id, 2, 1)
    audit = Audit.objects.get(subject=str(run.id), verb="retry")
    assert (audit.actor, audit.reason, audit.before) == ("eve", "mended", "failed")
    assert_settled(run)


def test_a_retried_step_that_fails_fails_the_workflow_again() -> None:
    run = finish(forked.enqueue())
    for _ in range(3):
        run.retry()
        finish(run)
        assert run.status == "failed"
        assert statuses(run)["third"] == "cancelled"
        assert_settled(run)
    assert attempts(run, "second") == 4


def test_a_workflow_without_failures_is_not_retried() -> None:
    BAD.clear()
    run = finish(forked.enqueue())
    with pytest.raises(TransitionRefused, match="succeeded"):
        run.retry()
    other = forked.enqueue()
    with pytest.raises(TransitionRefused, match="none of its steps has failed"):
        other.retry()


def test_a_running_workflow_retries_steps_that_failed_meanwhile() -> None:
    @workflow(name="tests.retried_meanwhile")
    def two(wf: Builder) -> None:
        bad = wf.step(picky.s(1), name="bad")
        late = wf.step(picky.using(run_after=3600).s(2), name="late")
        wf.step(echo.s(bad, late), name="both")

    run = finish(two.enqueue())
    assert (run.status, run.step("bad").status) == ("running", "failed")
    BAD.clear()
    run.retry()
    finish(run)
    assert statuses(run) == {"bad": "succeeded", "late": "running", "both": "waiting"}
    Task.objects.get(step__name="late").refresh_from_db()
    Task.objects.filter(step__name="late").update(run_after="2020-01-01T00:00Z")
    finish(run)
    assert run.status == "succeeded"
    assert_settled(run)


def test_a_map_reruns_failed_members_and_sends_the_others() -> None:
    run = group((picky.s(n) for n in range(6)), concurrency=2).enqueue()
    finish(run)
    assert run.status == "failed"
    sent = Task.objects.count()
    assert sent < 6
    BAD.clear()
    run.retry()
    finish(run)
    assert run.return_value == [0, 1, 2, 3, 4, 5]
    assert Lease.objects.count() == 7
    assert_settled(run)


def test_a_retried_map_keeps_its_concurrency() -> None:
    BAD.update(range(5))
    run = finish(group((picky.s(n) for n in range(5)), concurrency=5).enqueue())
    Step.objects.update(concurrency=2)
    BAD.clear()
    run.retry()
    assert Task.objects.filter(status="ready").count() == 2
    run_next()
    assert Task.objects.filter(status="ready").count() == 2
    finish(run)
    assert run.return_value == list(range(5))
    assert_settled(run)


def test_a_member_that_fails_again_ends_those_that_wait() -> None:
    BAD.update(range(5))
    run = finish(group((picky.s(n) for n in range(5)), concurrency=5).enqueue())
    Step.objects.update(concurrency=1)
    run.retry()
    finish(run)
    assert run.status == "failed"
    assert_settled(run)
    BAD.clear()
    run.retry()
    assert finish(run).return_value == list(range(5))


def test_a_failed_child_is_retried_in_place() -> None:
    run = finish(parent.enqueue())
    assert run.status == "failed"
    BAD.clear()
    run.retry()
    finish(run)
    assert run.status == "succeeded"
    child = Workflow.objects.get(name=forked.name)
    assert child.status == "succeeded"
    assert attempts(get_workflow(child.id), "first") == 1
    assert_settled(run)
    assert_settled(get_workflow(child.id))


def test_a_child_is_retried_by_its_parent_alone() -> None:
    run = finish(parent.enqueue())
    child = Workflow.objects.get(name=forked.name)
    with pytest.raises(TransitionRefused, match=str(run.id)):
        get_workflow(child.id).retry()


def test_the_failed_members_of_a_fan_out_run_again() -> None:
    run = finish(chain(spread.s(4), echo.s()).enqueue())
    assert run.status == "failed"
    BAD.clear()
    run.retry()
    finish(run)
    assert run.return_value == [[[0, 1, 2, 3]], {}]
    assert attempts(run, "spread") == 1
    assert_settled(run)


def test_from_a_step_all_behind_it_runs_anew() -> None:
    BAD.clear()
    run = finish(forked.enqueue())
    ids = set(Task.objects.values_list("id", flat=True))
    run.retry(from_step="second")
    assert statuses(run)["other"] == "succeeded"
    finish(run)
    assert run.status == "succeeded"
    assert set(Task.objects.values_list("id", flat=True)) == ids
    assert {step: attempts(run, step) for step in ("first", "second", "third", "other")} == {
        "first": 1, "second": 2, "third": 2, "other": 1,
    }  # fmt: skip
    assert_settled(run)


def test_from_a_step_maps_over_its_result_are_made_anew() -> None:
    @workflow(name="tests.remade")
    def remade(wf: Builder, count: int) -> None:
        numbers = wf.step(listing.s(count), name="numbers")
        parts = wf.step(picky.map(numbers), name="parts")
        wf.step(echo.s(parts), name="end")

    BAD.clear()
    run = finish(remade.enqueue(3))
    assert run.return_value == [[[0, 1, 2]], {}]
    LENGTHS.append(2)
    run.retry(from_step="numbers")
    finish(run)
    assert run.return_value == [[[0, 1]], {}]
    assert Task.objects.filter(step__name="parts").count() == 2
    assert_settled(run)


LENGTHS: list[int] = []


@task
def listing(count: int) -> list[int]:
    return list(range(LENGTHS.pop() if LENGTHS else count))


def test_from_a_step_fan_outs_and_children_are_made_anew() -> None:
    @workflow(name="tests.anew")
    def anew(wf: Builder) -> None:
        start = wf.step(listing.s(2), name="start")
        wf.step(spread.si(3), name="fan", after=start)
        wf.step(forked.s(), name="inner", after=start)

    BAD.clear()
    run = finish(anew.enqueue())
    assert run.status == "succeeded"
    first = set(Workflow.objects.filter(name=forked.name).values_list("id", flat=True))
    run.retry(from_step="start")
    finish(run)
    assert run.status == "succeeded"
    (child,) = Workflow.objects.filter(name=forked.name)
    assert child.id not in first
    assert run.step("fan[0]").ended == 3
    assert_settled(run)


def test_from_a_step_its_failed_fan_out_is_made_anew() -> None:
    run = finish(chain(spread.s(3), echo.s()).enqueue())
    assert statuses(run) == {"spread": "failed", "spread[0]": "failed", "echo": "cancelled"}
    BAD.clear()
    run.retry(from_step="spread")
    finish(run)
    assert run.return_value == [[[0, 1, 2]], {}]
    assert attempts(run, "spread") == 2
    assert_settled(run)


def test_from_a_step_its_cancelled_fan_out_is_made_anew() -> None:
    BAD.clear()
    run = spread.s(3).enqueue()
    run_next()
    run.cancel()
    assert finish(run).status == "cancelled"
    run.retry(from_step="spread")
    finish(run)
    assert run.return_value == [0, 1, 2]
    assert_settled(run)


@task
def canvas() -> Any:
    return fan_out(group(picky.si(number) for number in range(3)) | total_of.s())


def members_of(run: WorkflowRun) -> int:
    return Workflow.objects.get(id=run.id).members


@pytest.mark.parametrize("step", [spread.s(3), canvas.s()], ids=["calls", "canvas"])
@pytest.mark.parametrize("is_paused", [True, False])
def test_a_fan_out_that_is_made_anew_is_counted_once(step: Any, is_paused: bool) -> None:
    BAD.clear()
    undisturbed = finish(chain(step, echo.s()).enqueue())
    run = chain(step, echo.s()).enqueue()
    if is_paused:  # The calls that it returns are kept.
        run.pause()
    run_next()
    serve(connection)
    run.cancel()
    assert finish(run).status == "cancelled"
    run.retry(from_step=next(iter(run.steps)))  # It is not paused any more.
    assert finish(run).return_value == undisturbed.return_value
    assert members_of(run) == members_of(undisturbed)
    assert_settled(run)


def test_a_cancelled_fan_out_stays_where_its_step_has_succeeded_without_it() -> None:
    @workflow(name="tests.tolerant_of_a_cancel")
    def tolerant(wf: Builder) -> None:
        parts = wf.step(spread.map([2, 0]), name="parts", tolerate=1)
        wf.step(echo.s(parts), name="last")

    BAD.clear()
    run = tolerant.enqueue()
    run_next()
    run_next()
    run.cancel()
    finish(run)
    before = {"parts": "succeeded", "parts[0]": "cancelled", "parts[1]": "succeeded"}
    assert statuses(run) == before | {"last": "cancelled"}
    run.retry()
    assert finish(run).return_value == [[[None, []]], {}]
    assert statuses(run) == before | {"last": "succeeded"}
    assert_settled(run)


def test_a_map_that_is_made_anew_is_counted_once() -> None:
    @workflow(name="tests.remade_after_a_cancel")
    def remade(wf: Builder) -> None:
        numbers = wf.step(listing.s(5), name="numbers")
        wf.step(picky.map(numbers), name="parts", concurrency=2)

    BAD.clear()
    run = remade.enqueue()
    run_next()
    serve(connection)
    run.cancel()
    assert finish(run).step("parts").status == "cancelled"
    run.retry(from_step="numbers")
    assert finish(run).return_value == [0, 1, 2, 3, 4]
    assert members_of(run) == 6
    assert_settled(run)


def test_an_unknown_step_is_suggested() -> None:
    run = finish(forked.enqueue())
    with pytest.raises(WorkflowDoesNotExist, match="Did you mean 'second'"):
        run.retry(from_step="secnd")
    assert run.status == "failed"


def test_a_step_that_runs_is_not_begun_anew() -> None:
    run = forked.enqueue()
    with pytest.raises(TransitionRefused, match="running"):
        run.retry(from_step="first")


def test_a_cancelled_workflow_goes_on_where_it_was() -> None:
    BAD.clear()
    run = forked.enqueue()
    run_next()
    run.cancel()
    finish(run)
    assert run.status == "cancelled"
    run.retry()
    finish(run)
    assert run.status == "succeeded"
    assert attempts(run, "first") == 1
    assert_settled(run)


def test_a_deadline_that_has_passed_counts_from_the_retry() -> None:
    run = forked.using(deadline=3600).enqueue()
    Workflow.objects.filter(id=run.id).update(
        deadline_at="2020-01-01T01:00Z", created_at="2020-01-01T00:00Z"
    )
    finish(run)
    assert run.status == "failed"
    BAD.clear()
    run.retry()
    finish(run)
    assert run.status == "succeeded"


def test_a_key_that_another_one_holds_refuses_the_retry() -> None:
    keyed = forked.using(unique_key="one")
    run = finish(keyed.enqueue())
    other = keyed.enqueue()
    assert other.created
    with pytest.raises(TransitionRefused, match="unique key"):
        run.retry()
    BAD.clear()
    finish(other)
    run.refresh()
    assert (run.status, run.step("second").status) == ("failed", "failed")
    run.retry()
    assert not keyed.enqueue().created
    assert finish(run).status == "succeeded"


def test_callbacks_are_called_at_each_end() -> None:
    canvas = picky.s(1).on_failure(echo.si("bad")).on_success(echo.si("good"))
    run = finish(canvas.enqueue())
    run_due()
    BAD.clear()
    run.retry()
    finish(run)
    run_due()
    values = Task.objects.filter(name=echo.name, status="succeeded")
    assert {str(task.return_value) for task in values} >= {"[['good'], {}]"}


def test_a_resolved_step_gives_its_result_to_waiting_steps() -> None:
    run = finish(forked.enqueue())
    run.resolve("second", {"by": "hand"}, by="eve")
    finish(run)
    assert run.status == "succeeded"
    third = Task.objects.get(step__name="third")
    assert third.return_value == [[{"by": "hand"}], {}]
    assert run.step("second").status == "succeeded"
    assert attempts(run, "second") == 1
    assert Audit.objects.get(subject=str(run.id), verb="resolve").actor == "eve"
    assert_settled(run)


def test_members_that_a_retry_has_kept_are_cancelled_a_bounded_number_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(releasing, "MOST_CUT", 3)
    monkeypatch.setattr(stopping, "MOST_STOPPED", 2)
    BAD.update(range(20))
    run = finish(group((picky.s(n) for n in range(20)), concurrency=1, tolerate=19).enqueue())
    run.retry()
    assert Task.objects.filter(status="blocked").count() == 19
    run.cancel()
    assert Task.objects.filter(status="blocked").count() == 15
    finish(run)
    assert run.status == "cancelled"
    assert Task.objects.exclude(status="cancelled").count() == 0
    assert_settled(run)
    BAD.clear()
    run.retry()
    assert finish(run).return_value == list(range(20))
    assert_settled(run)


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_a_step_runs_anew_whose_fan_out_did_not_succeed(ending: str) -> None:
    run = chain(spread.s(3), total_of.s()).enqueue()
    run_next()
    serve(connection)
    if ending == "cancelled":
        run.cancel()
    finish(run)
    assert run.status == ending
    assert run.step("spread[0]").status == ending
    BAD.clear()
    run.retry(from_step="spread")
    finish(run)
    assert (run.status, run.return_value) == ("succeeded", 3)
    assert attempts(run, "spread") == 2
    assert_settled(run)


@workflow(name="tests.resolved_map")
def read_lazily(wf: Builder) -> None:
    numbers = wf.step(picky.map([0, 1, 2]), name="numbers")
    wf.step(echo.s(numbers), name="whole", when=numbers.length() == 2)
    wf.step(pages.s(numbers.lazy(), numbers.length()), name="pages")


@task
def pages(numbers: Any, length: int) -> list[Any]:
    return [list(numbers), length]


def test_a_map_that_was_resolved_has_that_result_also_where_it_is_read_lazily() -> None:
    run = finish(read_lazily.enqueue())
    run.resolve("numbers", [7, 8])
    finish(run)
    assert run.return_value == {"whole": [[[7, 8]], {}], "pages": [[7, 8], 2]}
    assert_settled(run)


def test_only_failed_steps_are_resolved() -> None:
    run = finish(forked.enqueue())
    for step in ("first", "third"):
        with pytest.raises(TransitionRefused, match="has not failed"):
            run.resolve(step, 1)
    run.refresh()
    assert run.status == "failed"


def test_a_resolved_step_that_runs_anew_has_its_own_result() -> None:
    run = finish(forked.enqueue())
    run.resolve("second", 77)
    finish(run)
    BAD.clear()
    run.retry(from_step="second")
    finish(run)
    assert Task.objects.get(step__name="third").return_value == [[1], {}]


@pytest.mark.postgresql_only  # SQLite locks the whole file.
def test_one_of_several_simultaneous_retries_is_carried_out() -> None:
    run = finish(forked.enqueue())
    BAD.clear()
    results: list[str] = []

    def retry() -> None:
        with another_connection():
            try:
                get_workflow(run.id).retry()
                results.append("retried")
            except TransitionRefused:
                results.append("refused")

    run_at_once([partial(retry)] * 4)
    assert sorted(results) == ["refused"] * 3 + ["retried"]
    finish(run)
    assert run.status == "succeeded"
    assert_settled(run)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_members_that_are_cancelled_while_they_wait_make_room_for_no_others(
    concurrency: int,
) -> None:
    BAD.update(range(8))
    run = finish(group((picky.s(n) for n in range(8)), concurrency=8, tolerate=7).enqueue())
    Step.objects.update(concurrency=concurrency)
    BAD.clear()
    run.retry()
    for waiting in Task.objects.filter(status="blocked").order_by("-place")[:3]:
        control.cancel(waiting.id)
    while ready := Task.objects.filter(status="ready").count():
        assert ready <= concurrency
        run_next()
    assert finish(run).status == "succeeded"
    assert run.return_value == [0, 1, 2, 3, 4, None, None, None]
    assert_settled(run)
