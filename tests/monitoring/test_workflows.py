"""What people see of workflows and their steps, and how they find them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from taskqueue import chain, chord, workflow
from taskqueue.declarations.workflows.drawing import picture_to_json
from taskqueue.engine.workflows.pictures import picture_of_workflow
from taskqueue.models import Task, Workflow
from taskqueue.monitoring.read_models.base import COMMAND_LINE, EVERYTHING, ViewerWithout
from taskqueue.monitoring.read_models.step import (
    ShownDependency,
    members_of,
    shown_members,
    shown_steps,
    steps_of,
)
from taskqueue.monitoring.read_models.task_history import shown_task
from taskqueue.monitoring.read_models.workflow import shown_workflow, shown_workflows
from taskqueue.monitoring.searching.workflows import WorkflowFilter, matching_workflows
from taskqueue.results.workflows import WorkflowRun
from taskqueue.workflows import Builder
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish
from tests.workflows.test_fan_out import spread, tree
from tests.workflows.test_running import parent

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "correct-horse-battery-staple"


@workflow(name="tests.guarded", sensitive={"token"})
def guarded(wf: Builder, day: str, token: str = "") -> None:
    wf.step(echo.s(day), name="only")


def row_of(run: WorkflowRun) -> Workflow:
    return Workflow.objects.get(id=run.id)


def found(**given: object) -> set[UUID]:
    which = WorkflowFilter(**given)  # type: ignore[arg-type]
    return {row.id for row in matching_workflows(which)}


def test_a_list_tells_how_many_members_have_ended() -> None:
    done = finish(chord([add.s(n, 1) for n in range(3)], echo.s()).enqueue())
    waiting = chord([add.s(n, 1) for n in range(5)], echo.s()).enqueue()
    newest, oldest = shown_workflows(list(matching_workflows(WorkflowFilter())))
    assert (newest.id, newest.ended, newest.members, newest.percent) == (waiting.id, 0, 6, 0)
    assert (oldest.id, oldest.ended, oldest.members, oldest.percent) == (done.id, 4, 4, 100)
    assert (oldest.open_steps, oldest.is_finished, oldest.failures) == (0, True, 0)


@workflow(name="tests.rarely_paged")
def rarely_paged(wf: Builder) -> None:
    total = wf.step(add.s(1, 2), name="total")
    wf.step(echo.s(total.error), name="page", after=total.failed)


def test_a_skipped_step_is_no_failure() -> None:
    run = finish(rarely_paged.enqueue())
    assert (run.status, run.progress) == ("succeeded", (2, 2))
    assert [step.failures for step in run.steps.values()] == [0, 0]
    (listed,) = shown_workflows([row_of(run)])
    assert (listed.members, listed.ended, listed.failures) == (2, 2, 0)
    assert [step.failures for step in shown_steps(list(steps_of(run.id)), COMMAND_LINE)] == [0, 0]


def test_one_workflow_tells_its_steps_its_children_and_its_result() -> None:
    run = finish(parent.enqueue(0))
    shown = shown_workflow(row_of(run), EVERYTHING)
    assert shown.return_value == run.return_value
    assert shown.step_counts["succeeded"] == 3
    assert sum(shown.step_counts.values()) == 3
    [child] = shown.children
    assert (child.step, child.name, child.status) == ("inner", "tests.diamond", "succeeded")

    inner = shown_workflow(Workflow.objects.get(id=child.id), EVERYTHING)
    assert (inner.parent, inner.parent_step) == (run.id, "inner")
    before, step, after = shown_steps(steps_of(run.id), EVERYTHING)
    assert (before.calls, before.task_status, before.ended) == (add.name, "succeeded", 1)
    assert (step.workflow_id, step.task_id, step.calls) == (child.id, None, "tests.diamond")
    assert after.after == [ShownDependency(step="inner", when="succeeded")]
    assert after.finished_at is not None


def test_a_step_that_failed_tells_the_error_of_its_first_member() -> None:
    run = finish(chord([fail.s("no"), fail.s("never")], echo.s()).enqueue())
    failed, cancelled = shown_steps(steps_of(run.id), EVERYTHING)
    assert (failed.status, failed.failures, failed.ended, failed.members) == ("failed", 2, 2, 2)
    assert failed.error is not None
    assert (failed.error.error_class, failed.error.message) == ("builtins.ValueError", "no")
    assert (cancelled.status, cancelled.error, cancelled.task_status) == (
        "cancelled", None, "cancelled",
    )  # fmt: skip
    shown = shown_workflow(row_of(run), EVERYTHING)
    assert shown.error == failed.error
    assert (shown.failed_step, shown.return_value) == (failed.name, None)

    [step] = [step for step in steps_of(run.id) if step.kind == "map"]
    first, second = shown_members(members_of(step))
    assert (first.place, first.status, first.error_message) == (0, "failed", "no")
    assert first.task_id == failed.error.task_id != second.task_id


def test_a_single_step_that_failed_tells_its_error() -> None:
    run = finish(chain(fail.s("no"), echo.s()).enqueue())
    failed, _ = shown_steps(steps_of(run.id), EVERYTHING)
    assert failed.error is not None
    assert (failed.error.message, failed.error.task_id) == ("no", failed.task_id)


def test_a_step_whose_fan_out_failed_tells_the_error_within_it() -> None:
    run = finish(chain(spread.s(3), echo.s()).enqueue())
    outer, _, fan = shown_steps(steps_of(run.id), EVERYTHING)
    assert (outer.status, outer.task_status, fan.status) == ("failed", "succeeded", "failed")
    assert outer.error == fan.error == shown_workflow(row_of(run), EVERYTHING).error
    assert outer.error is not None
    assert outer.error.message == "1 is odd"


def test_a_picture_shows_fan_outs_behind_the_steps_that_returned_them() -> None:
    run = finish(chain(tree.s(2, 2), echo.s()).enqueue())
    drawn = picture_to_json(picture_of_workflow(row_of(run)))
    assert {(link["from"], link["to"]) for link in drawn["links"]} == {
        ("tree", "echo"), ("tree", "tree[0]"), ("tree[0]", "tree[0][0]"),
        ("tree[0]", "tree[0][1]"),
    }  # fmt: skip
    shown = shown_workflow(row_of(run), EVERYTHING)
    assert (shown.members, shown.ended, shown.total_steps) == (8, 8, 5)


def test_tasks_and_results_are_for_those_who_may_see_tasks() -> None:
    run = finish(chain(add.s(1, 2), add.s(3)).enqueue())
    stranger = ViewerWithout(frozenset({"taskqueue.view_task"}))
    assert shown_workflow(row_of(run), EVERYTHING).return_value == 6
    assert shown_workflow(row_of(run), stranger).return_value is None
    for step in shown_steps(steps_of(run.id), stranger):
        assert (step.task_id, step.task_status, step.status) == (None, "", "succeeded")


def test_arguments_and_context_are_redacted_by_the_signature_of_the_builder() -> None:
    by_name = row_of(guarded.enqueue("monday", token=SECRET))
    by_place = row_of(guarded.enqueue("monday", SECRET))
    Workflow.objects.update(context={"token": SECRET, "rows": 3})
    for row in (by_name, by_place):
        row.refresh_from_db()
        shown = shown_workflow(row, EVERYTHING)
        assert SECRET not in str(shown)
        assert shown.context == {"token": "[redacted]", "rows": 3}
    assert shown_workflow(by_place, EVERYTHING).args == ["monday", "[redacted]"]
    assert shown_workflow(by_name, EVERYTHING).kwargs == {"token": "[redacted]"}


def test_arguments_of_an_unknown_workflow_are_for_those_who_may_see_any() -> None:
    run = guarded.enqueue("monday", SECRET)
    Workflow.objects.update(name="gone", context={"token": SECRET})
    shown = shown_workflow(row_of(run), COMMAND_LINE)
    assert (shown.args, shown.kwargs, shown.context) == (None, None, None)
    assert shown_workflow(row_of(run), EVERYTHING).args == ["monday", SECRET]
    plain = shown_workflow(row_of(chain(add.s(1, 2), add.s(1)).enqueue()), COMMAND_LINE)
    assert (plain.args, plain.kwargs, plain.context) == ([], {}, {})


def test_a_task_tells_its_place_in_a_workflow() -> None:
    run = finish(chord([add.s(n, 1) for n in range(3)], echo.s()).enqueue())
    [step] = [step for step in steps_of(run.id) if step.kind == "map"]
    task = members_of(step)[1].task
    shown = shown_task(task, EVERYTHING)
    assert (shown.workflow, shown.step, shown.place) == (run.id, step.name, 1)
    stranger = ViewerWithout(frozenset({"taskqueue.view_workflow"}))
    shown = shown_task(task, stranger)
    assert (shown.workflow, shown.step, shown.place) == (None, "", None)
    alone = shown_task(Task.objects.get(id=add.enqueue(1, 2).id), EVERYTHING)
    assert (alone.workflow, alone.step, alone.place) == (None, "", None)


def test_a_picture_shows_the_rows_as_they_are() -> None:
    run = finish(chord([fail.s("no"), add.s(1, 1)], echo.s()).enqueue())
    drawn = picture_to_json(picture_of_workflow(row_of(run)))
    assert drawn["steps"] == len(run.steps) == len(drawn["nodes"])
    assert {node["name"]: node["status"] for node in drawn["nodes"]} == {
        name: str(step.status) for name, step in run.steps.items()
    }
    assert {node["calls"] for node in drawn["nodes"]} == {add.name, echo.name, fail.name, ""}
    assert len(drawn["links"]) == 3


def test_each_filter_finds_what_matches_and_no_more() -> None:
    done = finish(guarded.enqueue("monday"))
    keyed = guarded.using(unique_key="one").enqueue("tuesday")
    other = chain(add.s(1, 2), add.s(3)).enqueue()
    other.pause()
    old = timezone.now() - timedelta(days=30)
    assert found() == {done.id, keyed.id, other.id}
    assert found(statuses=["succeeded"]) == {done.id}
    assert found(statuses=["running", "failed"]) == {keyed.id, other.id}
    assert found(names=["tests.guarded"]) == {done.id, keyed.id}
    assert found(name_prefix="tests.gua") == {done.id, keyed.id}
    assert found(unique_key="one") == {keyed.id}
    assert found(is_paused=True) == {other.id}
    assert found(is_paused=False) == {keyed.id}
    assert found(created_after=old) == {done.id, keyed.id, other.id}
    assert found(created_before=old) == set()
    assert found(id_prefix=str(done.id)[:36]) == {done.id}
    assert found(id_prefix=str(done.id)[:1].upper()) == {done.id, keyed.id, other.id}
    assert found(schedule="none") == set()
    assert found(names=["a\x00"]) == set()
    with pytest.raises(ValueError, match="not the beginning of an id"):
        found(id_prefix="x")


def test_children_are_found_by_their_parent_or_their_id() -> None:
    run = finish(parent.enqueue(0))
    child = Workflow.objects.exclude(parent_step_id=None).get()
    assert found() == {run.id}
    assert found(parent=run.id) == {child.id}
    assert found(id_prefix=str(child.id)) == {child.id}
