"""Tasks of workflows in people's hands: no verb counts an end twice, or copies half a workflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskqueue import control
from taskqueue.control import TaskFilter
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Lease, Task
from taskqueue.results.handle import get_result
from tests.engine.lost_workers import YEAR, lose, worker_row
from tests.engine.steps import claim_one
from tests.sample.tasks import add, fail
from tests.workflows.steps_of import assert_settled, finish

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "act",
    [
        lambda task_id: get_result(task_id).retry(args=[1, 2]),
        lambda task_id: control.duplicate(task_id),
        lambda task_id: control.delete(task_id),
    ],
    ids=["retry with other arguments", "duplicate", "delete"],
)
def test_a_finished_task_of_a_workflow_refuses(act: Callable[[Any], object]) -> None:
    run = finish((add.s(1, 2) | fail.s()).enqueue())
    for row in Task.objects.all():
        with pytest.raises(TransitionRefused, match="belongs to a workflow"):
            act(row.id)
    assert Task.objects.count() == 2
    assert run.status == "failed"


def test_a_blocked_task_is_not_duplicated() -> None:
    (add.s(1, 2) | add.s(3)).enqueue()
    blocked = Task.objects.get(status="blocked")
    with pytest.raises(TransitionRefused, match="belongs to a workflow"):
        control.duplicate(blocked.id)
    assert Task.objects.count() == 2


def test_bulk_verbs_leave_out_tasks_of_workflows() -> None:
    alone = fail.enqueue()
    run = finish(fail.s().enqueue())
    both = TaskFilter(name=fail.name)
    for verb in ("retry", "duplicate", "delete"):
        assert control.dry_run(both, verb).done == 1
    control.retry_many(both)
    alone.refresh()
    assert alone.status == "ready"
    assert Task.objects.get(step__isnull=False).status == "failed"
    run.refresh()
    assert run.status == "failed"


def test_an_attempt_of_a_lost_worker_is_still_retried() -> None:
    run = add.using(lease_duration=YEAR).s(1, 2).enqueue()
    worker_row("w1")
    claim_one(worker="w1")
    lose("w1")
    control.retry(Task.objects.get().id)
    assert Task.objects.get().status == "ready"
    assert finish(run).return_value == 3
    assert Lease.objects.count() == 2
    assert_settled(run)
