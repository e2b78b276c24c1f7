"""Workflows are pruned whole, and only once their own retention is over."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection

from taskqueue import chord
from taskqueue.engine.workflows import pruning
from taskqueue.engine.workflows.pruning import prune_workflows
from taskqueue.models import Dependency, Lease, Member, Step, Task, Workflow
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
