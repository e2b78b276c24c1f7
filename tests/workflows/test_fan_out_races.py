"""Fan-outs and updates that many workers record at once are applied once each."""

from __future__ import annotations

import json
from functools import partial

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue import chain, fan_out
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed
from taskqueue.engine.workflows import rounds, serving
from taskqueue.engine.workflows.fan_outs import keep_fan_out
from taskqueue.models import Member, Step, StepEnd, Task, Workflow
from tests.engine.steps import another_connection, claim, outcome, policy, run_at_once
from tests.sample.tasks import echo
from tests.workflows.steps_of import assert_settled
from tests.workflows.test_fan_out import leaves, tree

pytestmark = pytest.mark.django_db(transaction=True)
TREES, DEPTH, WIDTH, WORKERS = 4, 2, 4, 6


def play(own: BaseDatabaseWrapper, task: Claimed) -> Outcome:
    """Do what the body of a task does, and tell its outcome."""
    done = outcome(task, OutcomeKind.SUCCEEDED)
    if task.name != tree.name:
        return done._replace(return_value="1")
    depth, width, *rest = json.loads(task.args)
    path = rest[0] if rest else ""
    done = done._replace(updates=json.dumps({f"at-{path}": depth}))
    if not depth:
        return done._replace(return_value=json.dumps(path))
    calls = fan_out(tree, [((depth - 1, width, f"{path}{n}"), {}) for n in range(width)])
    keep_fan_out(own, calls, lease_id=task.lease_id, task_id=task.task_id)
    return done._replace(has_fan=True)


def work(worker: str, *, advances: bool = True) -> None:
    """Claim, run, record and advance as a worker does, until all workflows have ended."""
    with another_connection() as own:
        for _ in range(3000):
            with transaction(own):
                claimed = claim(3, worker=worker, connection=own)
            if not claimed:
                serving.serve(own)
                if not Workflow.objects.using(own.alias).filter(finished_at=None).exists():
                    return
                continue
            outcomes = [play(own, task) for task in claimed]
            with transaction(own):
                recorded = record(own, outcomes, policy=policy())
            if advances:
                steps = {row.step_id for row in recorded.values() if row.step_id is not None}
                rounds.fold_and_advance(own, steps)


@pytest.mark.parametrize("advances", [True, False])
def test_workers_that_fan_out_at_once_lose_and_repeat_nothing(advances: bool) -> None:
    runs = [chain(tree.s(DEPTH, WIDTH), echo.s()).enqueue() for _ in range(TREES)]
    run_at_once(partial(work, f"w{number}", advances=advances) for number in range(WORKERS))
    nodes = sum(WIDTH**level for level in range(DEPTH + 1))
    paths = {path for level in range(DEPTH + 1) for path in paths_at(level)}
    for run in runs:
        run.refresh()
        assert run.status == "succeeded"
        assert set(run.context) == {f"at-{path}" for path in paths}
        first = Task.objects.get(step__workflow_id=run.id, step__name="tree")
        assert run._results.result_of("tree") == leaves(DEPTH, WIDTH)
        assert first.return_value is None
        assert_settled(run)
    assert Task.objects.filter(name=tree.name).count() == TREES * nodes
    assert Member.objects.count() == TREES * (nodes + 1)
    assert Task.objects.filter(name=echo.name).count() == TREES
    assert not StepEnd.objects.exists()
    assert not Step.objects.filter(is_due=True).exists()


def paths_at(level: int) -> list[str]:
    return [f"{path}{n}" for path in paths_at(level - 1) for n in range(WIDTH)] if level else [""]
