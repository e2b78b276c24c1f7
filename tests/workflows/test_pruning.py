"""Workflows are pruned whole, and only once their own retention is over."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from taskqueue import TransitionRefused, chord, group
from taskqueue.control import TaskFilter, delete, delete_many, dry_run
from taskqueue.engine.control.audit import Person
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.pruning import prunable, prune_all
from taskqueue.engine.workflows import pruning
from taskqueue.engine.workflows.pruning import prune_workflows
from taskqueue.models import Audit, Dependency, Lease, Member, Step, StepCalls, Task, Workflow
from taskqueue.testing import run_due
from tests.sample.tasks import add, echo
from tests.workflows.steps_of import finish
from tests.workflows.test_running import parent

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def test_a_workflow_past_its_retention_goes_with_its_children_batch_by_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)
    kept = finish(chord([add.s(n, 1) for n in range(3)], echo.s()).enqueue())
    old = finish(parent.enqueue(0))
    assert not prune_workflows(connection)
    Workflow.objects.filter(id=old.id).update(prune_after=LONG_AGO)

    tasks = Task.objects.count()
    assert prune_workflows(connection)
    assert Task.objects.count() == tasks - 2
    while prune_workflows(connection):
        pass

    assert list(Workflow.objects.values_list("id", flat=True)) == [kept.id]
    assert {step.workflow_id for step in Step.objects.all()} == {kept.id}
    assert Task.objects.count() == Lease.objects.count() == Member.objects.count() == 4
    assert Dependency.objects.count() == 1
    assert kept.return_value == [[[1, 2, 3]], {}]


def test_children_are_pruned_so_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, no statement names more of them."""
    monkeypatch.setattr(pruning, "MOST_WORKFLOWS", 2)
    parts = [parent.s(n) for n in range(5)]
    old = finish(group(parts, concurrency=3).enqueue())
    assert old.status == "succeeded"
    assert Workflow.objects.count() == 1 + 2 * len(parts)
    Workflow.objects.filter(id=old.id).update(prune_after=LONG_AGO)
    named: list[int] = []
    delete = pruning._delete_tasks

    def noted(connection: Any, steps: Any, limit: int | None = None) -> int:
        named.append(steps.values("workflow_id").distinct().count())
        return delete(connection, steps, limit)

    monkeypatch.setattr(pruning, "_delete_tasks", noted)
    while prune_workflows(connection):
        pass
    assert max(named) == 2
    for model in (Workflow, Step, Task, Member, StepCalls, Dependency, Lease):
        assert not model._default_manager.exists(), model


def test_workflows_are_pruned_by_hand_too() -> None:
    kept = finish((add.s(1, 1) | echo.s()).enqueue())
    old = [finish(parent.enqueue(0)) for _ in range(2)]
    assert prunable(connection)["workflows"] == 0
    Workflow.objects.filter(id__in=[run.id for run in old]).update(prune_after=LONG_AGO)
    assert prunable(connection)["workflows"] == 2
    assert prune_all(connection, person=Person("anna", ""))["workflows"] == 2
    assert list(Workflow.objects.values_list("id", flat=True)) == [kept.id]
    assert Audit.objects.get(verb="prune").detail == "2 workflows"
    assert prunable(connection)["workflows"] == 0


def test_tasks_of_workflows_are_neither_pruned_nor_deleted_alone() -> None:
    run = finish((add.using(retention=0).s(1, 1) | add.s(1)).enqueue())
    alone = add.enqueue(1, 2)
    run_due()
    delete(alone)
    assert not Task.objects.exclude(prune_after=None).exists()
    first = Task.objects.order_by("id").first()
    assert first is not None
    assert not TASK_VERBS["delete"].fits(first)
    with pytest.raises(TransitionRefused, match="belongs to a workflow, which is deleted whole"):
        delete(first.id)
    every = TaskFilter(name=add.name, statuses=["succeeded"])
    assert dry_run(every, "delete")[1] == 0
    assert delete_many(every).done == 0
    assert run.return_value == 3
