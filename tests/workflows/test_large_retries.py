"""Retries of wide maps: their tasks wait again, or are cancelled, in many short transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from taskqueue import fan_out, group, task, workflow
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.record import record
from taskqueue.engine.workflows import advancing, pruning
from taskqueue.engine.workflows.pruning import prune_workflows
from taskqueue.engine.workflows.rounds import _advance_chunk, fold_and_advance
from taskqueue.engine.workflows.serving import serve
from taskqueue.models import Lease, Member, Step, Task, Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.workflows import Builder
from tests.engine.steps import another_connection, claim, outcome, policy
from tests.workflows.recount import assert_counts
from tests.workflows.steps_of import assert_settled, finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 4
WIDTH = 14
"""More than three times as many: a retry takes several transactions."""
BAD: set[int] = set()


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(advancing, "MOST_REOPENED", AT_ONCE)
    monkeypatch.setattr(advancing, "MOST_CANCELLED", AT_ONCE)
    BAD.clear()
    BAD.update(range(WIDTH))
    yield
    BAD.clear()


@task
def picky(number: int) -> int:
    if number in BAD:
        raise ValueError(f"{number} is bad")
    return number


@task
def numbers() -> list[int]:
    return list(range(WIDTH))


def tasks_by_status() -> dict[str, int]:
    found: dict[str, int] = {}
    for status in Task.objects.filter(step__kind="map").values_list("status", flat=True):
        found[status] = found.get(status, 0) + 1
    return found


def advance_once(run: WorkflowRun) -> None:
    """Do what one transaction of a worker does."""
    _advance_chunk(connection, [run.id])


def wide() -> WorkflowRun:
    """A map that has run; all its members fail that are bad."""
    return finish(group(picky.s(n) for n in range(WIDTH)).enqueue())


def test_a_retry_reopens_a_bounded_number_of_tasks_in_a_transaction() -> None:
    run = wide()
    assert tasks_by_status() == {"failed": WIDTH}
    run.retry()
    assert run.status == "running"
    for waiting in (1, 2, 3):
        assert tasks_by_status() == {
            "failed": WIDTH - waiting * AT_ONCE,
            "blocked": waiting * AT_ONCE,
        }
        advance_once(run)
    assert tasks_by_status() == {"ready": WIDTH}

    BAD.clear()
    finish(run)
    assert run.status == "succeeded"
    assert run.return_value == list(range(WIDTH))
    assert_settled(run)
    assert Lease.objects.count() == 2 * WIDTH


def test_no_member_runs_before_all_of_them_wait() -> None:
    run = wide()
    run.retry()
    (step,) = Step.objects.filter(workflow=run.id, kind="map")
    assert (step.status, step.is_due, step.reopen_from) == ("waiting", True, AT_ONCE)
    assert not Task.objects.filter(status="ready").exists()


def test_another_session_goes_on_where_one_stopped_in_the_middle() -> None:
    run = wide()
    run.retry()
    BAD.clear()
    with another_connection() as other:
        while serve(other):
            pass
    assert tasks_by_status() == {"ready": WIDTH}
    assert finish(run).status == "succeeded"


def test_members_that_succeeded_are_left_out_wherever_a_transaction_ends() -> None:
    BAD.difference_update(range(0, WIDTH, 2))
    run = wide()
    BAD.clear()
    run.retry()
    finish(run)
    assert run.return_value == list(range(WIDTH))
    attempts = list(
        Task.objects.filter(name=picky.name).order_by("place").values_list("attempt", flat=True)
    )
    assert attempts == [1 + place % 2 for place in range(WIDTH)]
    assert_settled(run)


def test_a_retry_from_a_map_runs_all_of_it_anew() -> None:
    BAD.clear()
    run = wide()
    run.retry(from_step="picky")
    assert tasks_by_status() == {"succeeded": WIDTH - AT_ONCE, "blocked": AT_ONCE}
    finish(run)
    assert run.status == "succeeded"
    assert set(Task.objects.filter(name=picky.name).values_list("attempt", flat=True)) == {2}
    assert_settled(run)


def test_a_map_that_is_made_anew_is_deleted_step_by_step() -> None:
    BAD.clear()
    run: WorkflowRun = (numbers.s() | picky.map()).enqueue()
    finish(run)
    before = set(Task.objects.filter(name=picky.name).values_list("id", flat=True))
    run.retry(from_step="picky")
    assert tasks_by_status() == {"succeeded": WIDTH - AT_ONCE}
    finish(run)
    assert run.return_value == list(range(WIDTH))
    after = set(Task.objects.filter(name=picky.name).values_list("id", flat=True))
    assert len(after) == WIDTH
    assert not before & after
    row = Workflow.objects.get(id=run.id)
    assert (row.total_steps, row.members) == (2, WIDTH + 1)
    assert_settled(run)


def test_a_retry_in_the_middle_of_another_runs_all_anew_that_was_to() -> None:
    BAD.clear()
    run = wide()
    run.retry(from_step="picky")
    run.cancel("wait")
    while serve(connection):
        pass
    run.refresh()
    assert run.status == "cancelled"
    assert not Task.objects.filter(status="blocked").exists()
    run.retry()
    finish(run)
    assert run.status == "succeeded"
    assert set(Task.objects.filter(name=picky.name).values_list("attempt", flat=True)) == {2}
    assert_settled(run)


def test_a_pause_in_the_middle_of_a_retry_holds_the_step() -> None:
    run = wide()
    BAD.clear()
    run.retry()
    run.pause()
    while serve(connection):
        pass
    assert tasks_by_status() == {"blocked": WIDTH}
    run.resume()
    while serve(connection):
        pass
    assert finish(run).status == "succeeded"


@workflow(name="tests.large_child")
def inner(wf: Builder) -> None:
    wf.step(picky.starmap([(n,) for n in range(WIDTH)]), name="map")


@workflow(name="tests.large_parent")
def outer(wf: Builder) -> None:
    wf.step(inner.s(), name="inner")


def test_the_wide_map_of_a_child_waits_again_step_by_step() -> None:
    run = finish(outer.enqueue())
    BAD.clear()
    run.retry()
    assert tasks_by_status() == {"failed": WIDTH - AT_ONCE, "blocked": AT_ONCE}
    finish(run)
    assert run.status == "succeeded"
    assert_settled(run)


@workflow(name="tests.large_waiting")
def behind(wf: Builder) -> None:
    first = wf.step(picky.s(0), name="first")
    wf.step(picky.starmap([(n,) for n in range(1, WIDTH + 1)]), name="map", after=first)


def waiting_map() -> WorkflowRun:
    """A workflow whose map waits with all of its tasks, which ran before."""
    BAD.clear()
    run = finish(behind.enqueue())
    run.retry(from_step="first")
    while serve(connection):
        pass
    assert tasks_by_status() == {"blocked": WIDTH}
    return run


def test_a_waiting_map_is_cancelled_in_bounded_transactions() -> None:
    run = waiting_map()
    run.cancel("enough")
    assert tasks_by_status() == {"blocked": WIDTH - AT_ONCE, "cancelled": AT_ONCE}
    assert statuses(run)["map"] == "waiting"
    while serve(connection):
        pass
    run.refresh()
    assert run.status == "cancelled"
    assert_settled(run)


def test_a_map_behind_a_step_that_fails_is_cancelled_step_by_step() -> None:
    run = waiting_map()
    BAD.add(0)
    finish(run)
    assert run.status == "failed"
    assert tasks_by_status() == {"cancelled": WIDTH}
    assert statuses(run) == {"first": "failed", "map": "cancelled"}
    assert_settled(run)
    BAD.clear()
    run.retry()
    assert finish(run).status == "succeeded"
    assert_settled(run)


@task
def spread() -> object:
    return fan_out(picky, [((n,), {}) for n in range(WIDTH)])


@workflow(name="tests.wide_child")
def wide_child(wf: Builder) -> None:
    wf.step(group(picky.s(n) for n in range(WIDTH)), name="parts")


@workflow(name="tests.wide_below")
def wide_below(wf: Builder) -> None:
    first = wf.step(numbers.s(), name="first")
    wf.step(spread.si(), name="fan", after=first)
    wf.step(wide_child.s(), name="child", after=first)


def test_tasks_replaced_by_a_retry_are_deleted_by_the_pruning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own transaction deletes no task, however many the fan-outs and children have."""
    BAD.clear()
    run = finish(wide_below.enqueue())
    assert run.status == "succeeded"
    before = set(Task.objects.values_list("id", flat=True))
    assert len(before) == 2 + 2 * WIDTH
    run.retry(from_step="first")
    assert set(Task.objects.values_list("id", flat=True)) == before
    assert not Workflow.objects.filter(name=wide_child.name, prune_after=None).exclude(
        parent_step_id__in=Step.objects.filter(name="").values("id")
    )
    assert set(run.steps) == {"first", "fan", "child"}

    monkeypatch.setattr(pruning, "BATCH", AT_ONCE)
    deleted = []
    left = len(before)
    while prune_workflows(connection):
        deleted.append(left - (left := Task.objects.count()))
    assert max(deleted) == AT_ONCE
    assert sum(deleted) == 2 * WIDTH
    assert Workflow.objects.get().id == run.id
    assert Step.objects.count() == 3

    finish(run)
    assert run.status == "succeeded"
    assert run.steps["fan[0]"].ended == WIDTH
    assert Member.objects.count() == Task.objects.count() == len(before)
    assert_settled(run)


@workflow(name="tests.compensated")
def compensated(wf: Builder) -> None:
    first = wf.step(numbers.s(), compensate=spread.si(), name="first")
    wf.step(picky.si(0), after=first, name="last")


def test_compensations_that_a_retry_forgets_are_deleted_by_the_pruning() -> None:
    run = finish(compensated.enqueue())
    assert run.status == "failed"
    assert "first (compensation)" in run.steps
    tasks = Task.objects.count()
    run.retry()
    assert set(run.steps) == {"first", "last"}
    assert Task.objects.count() == tasks
    while prune_workflows(connection):
        pass
    assert Task.objects.count() == 2
    BAD.clear()
    finish(run)
    assert run.status == "succeeded"
    assert_settled(run)


@task
def chained(number: int) -> object:
    if number in BAD:
        raise ValueError(f"{number} is bad")
    return number or fan_out(picky.si(AT_ONCE) | picky.si(1))


def test_a_fan_out_that_ends_beside_the_last_part_is_counted_once() -> None:
    BAD.remove(AT_ONCE)
    BAD.remove(0)
    run = finish(group(chained.s(n) for n in range(AT_ONCE + 2)).enqueue())
    assert run.status == "failed"
    BAD.clear()
    run.retry()
    [claimed] = claim(10)
    assert claimed.name == picky.name, "The others wait for the last one."
    done = outcome(claimed, OutcomeKind.SUCCEEDED, return_value="1")
    recorded = record(connection, [done], policy=policy())
    fold_and_advance(connection, [recorded[claimed.lease_id].step_id or 0])
    (step,) = Step.objects.filter(workflow=run.id, parent_step_id=None)
    assert (step.reopen_from, step.ended) == (None, 2)
    assert finish(run).status == "succeeded"
    assert_settled(run)


def test_a_map_that_waits_for_a_failure_beside_its_last_part_is_cancelled() -> None:
    @workflow(name="tests.failed_beside")
    def failed_beside(wf: Builder) -> None:
        first = wf.step(picky.si(WIDTH), name="first")
        wf.step(picky.map(range(WIDTH)), name="parts", after=first)

    BAD.clear()
    run = finish(failed_beside.enqueue())
    run.retry(from_step="first")
    advance_once(run)
    advance_once(run)
    (parts,) = Step.objects.filter(workflow=run.id, name="parts")
    assert parts.reopen_from is not None, "There is one more part."
    [claimed] = claim(10)
    failure = outcome(claimed, OutcomeKind.FAILED, retryable=False)
    recorded = record(connection, [failure], policy=policy())
    fold_and_advance(connection, [recorded[claimed.lease_id].step_id or 0])
    assert finish(run).status == "failed"
    assert statuses(run) == {"first": "failed", "parts": "cancelled"}
    assert_settled(run)


@task
def spread_wide() -> object:
    return fan_out(picky.s(n) for n in range(WIDTH))


def test_a_fan_out_that_is_cancelled_while_it_waits_is_counted_in_its_step() -> None:
    run = finish(spread_wide.s().enqueue())
    assert run.status == "failed"
    run.retry()
    assert set(statuses(run).values()) == {"running", "waiting"}, "The fan-out has more parts."
    run.cancel("not needed")
    assert finish(run).status == "cancelled"
    assert_settled(run)
    BAD.clear()
    run.retry()
    assert finish(run).status == "succeeded"
    assert_settled(run)


@task
def failing_or_spread(number: int) -> object:
    return fan_out([picky.si(number)]) if number < 2 else picky.func(number)


def test_a_step_and_its_fan_outs_that_are_cancelled_while_all_wait_are_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advancing, "MOST_CANCELLED", 10 * WIDTH)
    run = finish(group(failing_or_spread.s(n) for n in range(WIDTH)).enqueue())
    assert run.status == "failed"
    run.retry()
    assert set(statuses(run).values()) == {"waiting"}
    run.cancel("not needed")
    assert finish(run).status == "cancelled"
    (above,) = Step.objects.filter(workflow=run.id, parent_step_id=None)
    assert (above.ended, above.failures) == (WIDTH, WIDTH)
    assert_counts()
