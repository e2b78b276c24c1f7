"""Schedules that run workflows: a run is the whole workflow, not its first task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import InvalidSchedule, Scheduled, current, schedules, task, workflow
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.definition import registry
from taskqueue.declarations.workflows.workflow import workflows
from taskqueue.engine.schedules.advancing import MOST_WORKFLOWS
from taskqueue.exceptions import TransitionRefused, UnknownTask
from taskqueue.models import Audit, Occurrence, Schedule, Task, Workflow
from taskqueue.results.workflows import WorkflowRun, get_workflow
from taskqueue.rules import AfterEnd, Rule
from taskqueue.testing import run_due, run_next
from taskqueue.workflows import Builder
from tests.engine.steps import claim_one
from tests.sample.tasks import add, echo, fail, noop
from tests.schedules import steps
from tests.schedules.steps import HOURLY, serve

# So far ahead that playing a worker serves none of these times.
NOON = datetime(2100, 6, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="scheduled.sum")
def total(wf: Builder, start: int = 1) -> None:
    first = wf.step(add.s(start, 1), name="first")
    wf.step(add.s(first, 10), name="second")


@task
def tell_time() -> list[str]:
    """Tell of which schedule, and for which time, its workflow is."""
    own = current().workflow
    return [own.schedule, own.nominal_at.isoformat() if own.nominal_at else ""]


@workflow(name="scheduled.telling")
def telling(wf: Builder) -> None:
    wf.step(echo.s(wf.step(tell_time.s())))


@workflow(name="scheduled.failing")
def failing(wf: Builder) -> None:
    wf.step(fail.si(), name="bad")


@workflow(name="scheduled.unique", unique_key="only", on_duplicate="raise")
def unique(wf: Builder) -> None:
    wf.step(noop.s())


@workflow(name="scheduled.wide")
def wide(wf: Builder, number: int) -> None:
    wf.step(echo.map([{"text": "x" * 100}] * number))


@workflow(name="scheduled.broken", sensitive={"token"})
def broken(wf: Builder, token: str) -> None:
    raise LookupError(token)


@pytest.fixture(autouse=True)
def _own_workflows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the workflows that a test declares."""
    monkeypatch.setattr(workflows, "_definitions", dict(workflows._definitions))


def make(rule: Rule = HOURLY, **options: Any) -> Schedule:
    """A schedule that counts from noon on."""
    return steps.make(rule, since=NOON, **options)


def at(hours: float) -> datetime:
    """So many hours past noon."""
    return NOON + timedelta(hours=hours)


def hours(moment: datetime | None) -> float:
    """How many hours past noon that is."""
    assert moment is not None
    return (moment - NOON).total_seconds() / 3600


def occurrences(**chosen: Any) -> list[float]:
    """The nominal times of the occurrences that fit, in hours past noon."""
    return [hours(row.nominal_at) for row in Occurrence.objects.filter(**chosen).order_by("id")]


def reasons() -> dict[float, str]:
    """Why which were skipped."""
    skipped = Occurrence.objects.filter(status="skipped")
    return {hours(row.nominal_at): row.reason for row in skipped}


def run_at(hours: float) -> WorkflowRun:
    """The workflow of a nominal time."""
    return get_workflow(Workflow.objects.get(nominal_at=at(hours)).id)


def begun() -> list[float]:
    """The nominal times that have a workflow, in hours past noon."""
    rows = Workflow.objects.filter(schedule__isnull=False).order_by("nominal_at")
    return [hours(row.nominal_at) for row in rows]


def test_a_run_is_a_workflow_which_is_inserted_with_its_occurrence() -> None:
    schedule = make(task=total, args=[5])
    serve(at(1))
    run = run_at(1)
    row = Workflow.objects.get(id=run.id)
    assert (row.name, row.schedule_id, row.args) == ("scheduled.sum", schedule.id, [5])
    assert list(run.steps) == ["first", "second"]
    occurrence = Occurrence.objects.get()
    assert (occurrence.workflow_id, occurrence.task_id) == (run.id, None)
    assert (occurrence.status, occurrence.nominal_at) == ("enqueued", at(1))
    schedule.refresh_from_db()
    assert (schedule.last_workflow_id, schedule.last_task_id) == (run.id, None)


def test_a_worker_that_serves_a_workflow_schedule_needs_no_code_of_the_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(task=total)

    def unknown(*args: Any) -> Any:
        raise AssertionError("a worker's parent asks for a definition")

    with monkeypatch.context() as patch:
        for found in (registry, workflows):
            patch.setattr(found, "find", unknown)
            patch.setattr(found, "all", unknown)
        patch.setattr("taskqueue.declarations.registry.discover_tasks", unknown)
        serve(at(1))
    assert run_at(1).steps["first"].status == "running"


def test_its_end_is_that_of_the_whole_workflow() -> None:
    schedule = make(task=total, args=[1])
    serve(at(1))
    run_next()
    serve(at(1.1))
    assert Occurrence.objects.get().status == "enqueued"
    run_due()
    serve(at(1.2))
    occurrence = Occurrence.objects.get()
    assert (occurrence.status, occurrence.task_status) == ("ended", "succeeded")
    assert occurrence.finished_at == Workflow.objects.get().finished_at
    schedule.refresh_from_db()
    assert (schedule.last_status, schedule.last_return_value) == ("succeeded", 12)


def test_its_bodies_know_the_schedule_and_the_nominal_time() -> None:
    make(task=telling)
    serve(at(1))
    run_due()
    assert run_at(1).return_value == [[["s", at(1).isoformat()]], {}]
    alone = telling.enqueue()
    run_due()
    alone.refresh()
    assert alone.return_value == [[["", ""]], {}]


def test_skip_leaves_out_what_comes_while_a_step_has_not_ended() -> None:
    make(task=total, overlap="skip")
    serve(at(1))
    run_next()
    serve(at(2))
    assert reasons() == {2: f"The run of {at(1).isoformat()} has not ended."}
    run_due()
    serve(at(3))
    assert begun() == [1, 3]


@pytest.mark.parametrize("overlap", ["queue_one", "queue_all"])
def test_a_queued_run_begins_when_the_workflow_before_it_has_ended(overlap: str) -> None:
    make(task=total, overlap=overlap)
    serve(at(1))
    serve(at(2))
    run_next()
    serve(at(2.1))
    assert (begun(), occurrences(status="waiting")) == ([1], [2])
    run_due()
    serve(at(2.2))
    assert (begun(), occurrences(status="waiting")) == ([1, 2], [])


def test_allow_lets_workflows_run_side_by_side() -> None:
    make(task=total, overlap="allow")
    serve(at(1))
    serve(at(2))
    assert begun() == [1, 2]


def test_cancel_cancels_the_whole_workflow_and_starts_the_new_one() -> None:
    make(task=total, overlap="cancel")
    serve(at(1))
    serve(at(2))
    tasks = Task.objects.filter(step__workflow=run_at(1).id)
    assert set(tasks.values_list("status", flat=True)) == {TaskStatus.CANCELLED}
    entry = Audit.objects.get(noun="workflow", verb="cancel")
    reason = f"The run of {at(2).isoformat()} has come."
    assert (entry.actor, entry.reason) == ("schedule s", reason)
    run_due()
    serve(at(2.1))
    run_due()
    serve(at(2.2))
    rows = Occurrence.objects.order_by("nominal_at")
    assert list(rows.values_list("task_status", flat=True)) == ["cancelled", "succeeded"]
    assert begun() == [1, 2]


def test_cancel_waits_for_a_step_that_runs() -> None:
    make(task=total, overlap="cancel")
    serve(at(1))
    claim_one()
    serve(at(2))
    assert str(run_at(1).status) == "stopping"
    assert (begun(), occurrences(status="waiting")) == ([1], [2])
    serve(at(3))  # It stops already: the request is not repeated.
    assert Audit.objects.filter(noun="workflow", verb="cancel").count() == 1
    assert occurrences(status="waiting") == [3]


def test_failed_workflows_count_and_pause_the_schedule() -> None:
    schedule = make(task=failing, pause_after_failures=2)
    for hour in (1, 2):
        serve(at(hour))
        run_due(errors="record")
        serve(at(hour + 0.1))
    schedule.refresh_from_db()
    assert (schedule.failures_in_row, schedule.paused_itself) == (2, True)
    assert schedule.last_status == "failed"
    assert schedule.last_error.startswith("builtins.ValueError")
    serve(at(3))
    assert begun() == [1, 2]


def test_a_rule_that_waits_for_an_end_counts_from_that_of_the_workflow() -> None:
    schedule = make(AfterEnd(hours=1), task=total)
    serve(at(1))
    schedule.refresh_from_db()
    assert schedule.next_at is None
    run_due()
    serve(timezone.now())
    schedule.refresh_from_db()
    ended_at = Workflow.objects.get().finished_at
    assert ended_at is not None
    assert schedule.next_at == ended_at + timedelta(hours=1)


def test_missed_workflows_are_started_a_few_at_a_time() -> None:
    schedule = make(task=total, missed="all", overlap="allow")
    serve(at(12))
    assert len(begun()) == MOST_WORKFLOWS
    serve(at(12))
    serve(at(12))
    assert begun() == list(range(1, 13))
    schedule.refresh_from_db()
    assert schedule.next_at == at(13)


def test_it_is_run_by_hand_and_its_unique_key_holds() -> None:
    make(task=unique, overlap="allow")
    made = schedules.run_now("s", by="ada")
    assert made.workflow_id == Workflow.objects.get().id
    assert Audit.objects.get(verb="run_now").detail == f"workflow {made.workflow_id}"
    with pytest.raises(TransitionRefused, match=f"is held by workflow {made.workflow_id}"):
        schedules.run_now("s")
    serve(at(1))
    assert reasons() == {1: f"Its unique key is held by workflow {made.workflow_id}."}


def test_a_run_whose_workflow_was_pruned_has_ended() -> None:
    schedule = make(task=total)
    serve(at(1))
    Workflow.objects.all().delete()
    serve(at(1.1))
    schedule.refresh_from_db()
    assert Occurrence.objects.get().status == "ended"
    assert (schedule.last_status, schedule.last_return_value) == ("", None)


def test_the_result_of_a_workflow_of_many_members_is_not_kept() -> None:
    schedule = make(task=wide, args=[201])
    serve(at(1))
    run_due()
    serve(at(1.1))
    schedule.refresh_from_db()
    assert (schedule.last_status, schedule.last_return_value) == ("succeeded", None)


def test_declared_schedules_of_workflows_are_synchronised() -> None:
    def body(wf: Builder, number: int = 1) -> None:
        wf.step(add.s(number, 1))

    declared = workflow(name="scheduled.made", schedule=Scheduled(HOURLY, args=[1]))(body)
    synced = schedules.sync()
    assert (synced.created, synced.refused) == (["scheduled.made"], [])
    row = schedules.get("scheduled.made")
    assert (row.task_name, row.is_workflow, row.source) == ("scheduled.made", True, "code")
    again = schedules.sync()
    assert (again.changed, again.created) == ([], [])

    def changed(wf: Builder, number: int = 1) -> None:
        wf.step(add.s(number, 2))

    declared.body = changed
    schedules.sync()
    before, row = row, schedules.get("scheduled.made")
    assert row.request != before.request
    assert (row.changed_at, row.next_at) == (before.changed_at, before.next_at)
    serve(row.next_at or at(0))
    run_due()
    assert get_workflow(Workflow.objects.get().id).return_value == 3


def test_a_schedule_made_by_hand_follows_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    make(task="scheduled.sum")

    def changed(wf: Builder, start: int = 1) -> None:
        wf.step(add.s(start, 100), name="only")

    monkeypatch.setattr(total, "body", changed)
    assert schedules.sync().refused == []
    serve(at(1))
    assert list(run_at(1).steps) == ["only"]


def test_a_schedule_of_an_invalid_workflow_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match=r"can be stored\. Let a first step find the calls"):
        make(task=wide, args=[20_000])
    with pytest.raises(InvalidSchedule, match=r"^scheduled.broken raised LookupError with these"):
        make(task=broken, args=["hunter2"])
    with pytest.raises(InvalidSchedule, match="no option 'priority' of a workflow"):
        make(task=total, options={"priority": 5})
    with pytest.raises(InvalidSchedule, match="on_duplicate is not an option of a schedule"):
        make(task=total, options={"on_duplicate": "raise"})
    with pytest.raises(UnknownTask, match=r"No task and no workflow is named 'scheduled\.su'"):
        make(task="scheduled.su")
    assert not Schedule.objects.exists()


def test_options_of_a_schedule_are_those_of_its_workflows() -> None:
    make(task=total, options={"deadline": 7200, "retention": "1d"})
    serve(at(1))
    row = Workflow.objects.get()
    assert row.retention == timedelta(days=1)
    assert row.deadline_at == row.created_at + timedelta(hours=2)


def test_a_workflow_in_place_of_a_task_is_not_given_its_arguments() -> None:
    make(task=add, args=[1])
    with pytest.raises(InvalidSchedule, match="Write args anew"):
        schedules.edit("s", task=total)
    row = schedules.edit("s", task=total, args=[2])
    assert (row.is_workflow, row.task_name) == (True, "scheduled.sum")
    kept = schedules.edit("s", task="scheduled.sum", overlap="allow")
    assert (kept.args, kept.is_workflow) == ([2], True)


def test_a_graph_of_another_version_is_trouble_until_it_is_compiled_again() -> None:
    schedule = make(task=total)
    newer = {**schedule.request, "graph": {**schedule.request["graph"], "format": 99}}
    Schedule.objects.update(request=newer)
    serve(at(1))
    schedule.refresh_from_db()
    assert "The workflow is stored in format 99" in schedule.trouble
    schedules.sync()
    serve(at(1))
    schedule.refresh_from_db()
    assert (schedule.trouble, begun()) == ("", [1])
