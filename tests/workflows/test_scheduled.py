"""Scheduled workflows with real workers, whose parents run no code of the project."""

from __future__ import annotations

import pytest

from taskqueue import Every, chord, schedules, workflow
from taskqueue.models import Occurrence, Workflow
from taskqueue.results.workflows import get_workflow
from taskqueue.workflows import Builder
from tests.conftest import StartWorker
from tests.sample.tasks import add, echo
from tests.worker_process import wait_until
from tests.workflows.steps_of import assert_settled

pytestmark = pytest.mark.slow


@workflow(name="scheduled.in_this_test_alone")
def gather(wf: Builder, number: int) -> None:
    wf.step(chord([add.s(place, 1) for place in range(number)], echo.s()))


def test_workers_serve_a_schedule_of_a_workflow_that_their_code_does_not_have(
    start_worker: StartWorker,
) -> None:
    schedules.create("often", gather, Every(seconds=1), args=[3], overlap="queue_all")
    start_worker("--concurrency", "2")
    ended = Occurrence.objects.filter(status="ended", task_status="succeeded")
    wait_until(lambda: ended.count() >= 2, 60, what="two runs")
    schedules.pause("often")
    for row in Workflow.objects.filter(id__in=ended.values("workflow_id")):
        run = get_workflow(row.id)
        assert run.return_value == [[[1, 2, 3]], {}]
        assert_settled(run)
    assert schedules.get("often").last_return_value == [[[1, 2, 3]], {}]
